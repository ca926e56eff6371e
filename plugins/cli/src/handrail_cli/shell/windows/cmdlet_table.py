"""Effects of PowerShell's own commands and their parameters, as data; commands not listed here require approval.

One line per command: its name, a grade, its parameters. A parameter is `Name,Alias…` and a letter for the use of its
value:

    :l  a place of which only names and sizes are looked at
    !   a switch                       :v  plain data                    :r  a place that is read (`:R` with all below it)
    :w  a place that is written        :d  a place that is deleted       :x  code, or data where no block is given
    :t  a text, or files that were found and are read
    :u  an address on the network      :b  what is sent there            :i  a file that is sent there
    !?  a switch beyond the grade      :?  a value beyond the grade: both make the command one that a person must see
    ~   known only where files are: a beginning means another one first
    @n  its position among the words without a name; `*` it takes what is piped in

Sources: the reference pages of Microsoft.PowerShell.Core, .Management, .Utility, .Security, .Archive, .Host,
.Diagnostics, CimCmdlets, NetTCPIP, Storage.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from handrail_cli.shell.windows.findings import FindingGrade

PATHS = "Path:r@0* LiteralPath,PSPath,LP:r"
LISTED = PATHS.replace(":r", ":l")
FILTERS = "Filter:v Include:v Exclude:v"
COMMON = (
    "Verbose,vb! Debug,db! ErrorAction,ea:v WarningAction,wa:v InformationAction,infa:v ProgressAction,proga:v ErrorVariable,ev:v "
    "WarningVariable,wv:v InformationVariable,iv:v OutVariable,ov:v OutBuffer,ob:v PipelineVariable,pv:v"
)
# Cmdlets that change something know these too.
SHOULD_PROCESS = "WhatIf,wi! Confirm,cf!"

READING = f"""
Get-ChildItem {LISTED} Filter:v@1 Include:v Exclude:v Recurse,s! Depth:v Force! Name! Attributes:v FollowSymlink! ~Directory,ad,d! ~File,af!
    ~Hidden,ah,h! ~ReadOnly,ar! ~System,as! ~CodeSigningCert! UseTransaction!
Get-Content {PATHS} {FILTERS} ReadCount:v TotalCount,First,Head:v Tail,Last:v Force! Delimiter:v Wait! Raw! Encoding:v AsByteStream!
    Stream:? Credential:?
Get-Item {LISTED} {FILTERS} Force! Stream:v Credential:?
Get-ItemProperty {LISTED} Name,PSProperty:v@1 {FILTERS} Credential:?
Get-ItemPropertyValue {LISTED} Name,PSProperty:v@1 {FILTERS} Credential:?
Test-Path {LISTED} {FILTERS} PathType,Type:v IsValid! NewerThan:v OlderThan:v Credential:?
Resolve-Path {LISTED} Relative! RelativeBasePath:v Force! Credential:?
Convert-Path {LISTED}
Join-Path Path,PSPath:v@0* ChildPath:v@1 AdditionalChildPath:v@2 Resolve! Credential:?
Split-Path Path:v@0* LiteralPath,PSPath:v Leaf! LeafBase! Extension! Parent! Qualifier! NoQualifier! IsAbsolute! Resolve! Credential:?
Get-Location PSProvider:v PSDrive:v Stack! StackName:v
Select-String Pattern:v@0 Path:r@1 LiteralPath,PSPath,LP:r InputObject:t* SimpleMatch! CaseSensitive! Quiet! List! NoEmphasis! Raw!
    Include:v Exclude:v NotMatch! AllMatches! Encoding:v Context:v Culture:v
Measure-Object Property:v@0 InputObject:v* StandardDeviation! Sum! AllStats! Average! Maximum! Minimum! Line! Word! Character!
    IgnoreWhiteSpace!
Select-Object Property:x@0 InputObject:v* ExcludeProperty:v ExpandProperty:v Unique! CaseInsensitive! Last:v First:v Skip:v SkipLast:v
    Index:v SkipIndex:v Wait!
Sort-Object Property:x@0 InputObject:v* Descending! Unique! Stable! Top:v Bottom:v Culture:v CaseSensitive!
Group-Object Property:x@0 InputObject:v* NoElement! AsHashTable,AHT! AsString! Culture:v CaseSensitive!
Where-Object Property:v@0 Value:v@1 FilterScript:x@0 InputObject:v* Not! EQ,CEQ,IEQ! NE,CNE,INE! GT,CGT,IGT! LT,CLT,ILT! GE,CGE,IGE!
    LE,CLE,ILE! Like,CLike,ILike! NotLike! Match,CMatch,IMatch! NotMatch! Contains! NotContains! In! NotIn! Is! IsNot!
ForEach-Object Process:x@0 Begin:x End:x RemainingScripts:x@1 MemberName:v ArgumentList,Args:v InputObject:v* Parallel:x ThrottleLimit:v
    TimeoutSeconds:v AsJob! UseNewRunspace!
Compare-Object ReferenceObject:v@0 DifferenceObject:v@1* SyncWindow:v Property:v ExcludeDifferent! IncludeEqual! PassThru! Culture:v
    CaseSensitive!
Format-Table Property:x@0 InputObject:v* AutoSize! RepeatHeader! HideTableHeaders! Wrap! GroupBy:x View:v ShowError! DisplayError! Force!
    Expand:v
Format-List Property:x@0 InputObject:v* GroupBy:x View:v ShowError! DisplayError! Force! Expand:v
Format-Wide Property:x@0 InputObject:v* AutoSize! Column:v GroupBy:x View:v Force! Expand:v
Format-Custom Property:x@0 InputObject:v* Depth:v GroupBy:x View:v Force! Expand:v
Format-Hex {PATHS} InputObject:v Encoding:v Count:v Offset:v Raw!
Out-String Stream! Width:v NoNewline! InputObject:v*
Out-Host Paging! InputObject:v*
Out-Default Transcript! InputObject:v*
Out-Null InputObject:v*
Write-Output InputObject:v@0* NoEnumerate!
Write-Host Object,Msg,Message:v@0* NoNewline! Separator:v ForegroundColor:v BackgroundColor:v
Write-Verbose Message,Msg:v@0*
Write-Warning Message,Msg:v@0*
Write-Debug Message,Msg:v@0*
Write-Error Message,Msg:v@0* Exception:v ErrorRecord:v Category:v ErrorId:v TargetObject:v RecommendedAction:v
Write-Information MessageData,Msg,Message:v@0* Tags:v@1
Write-Progress Activity:v@0 Status:v@1 Id:v@2 PercentComplete:v SecondsRemaining:v CurrentOperation:v ParentId:v Completed! SourceId:v
Get-Process Name,ProcessName:v@0* Id,PID:v InputObject:v Module! FileVersionInfo,FV,FVI! IncludeUserName! ComputerName,Cn:?
Get-Service Name,ServiceName,SN:v@0* DisplayName:v DependentServices,DS! RequiredServices,SDO,ServicesDependedOn! Include:v Exclude:v
    InputObject:v ComputerName,Cn:?
Get-Command Name:v@0* Verb:v Noun:v Module,PSSnapin:v FullyQualifiedModule:v CommandType,Type:v TotalCount:v Syntax! ShowCommandInfo!
    ArgumentList,Args:v@1 All! ListImported! ParameterName:v ParameterType:v UseFuzzyMatching! FuzzyMinimumDistance:v
    UseAbbreviationExpansion!
Get-Help Name:v@0* Path:v Category:v Component:v Functionality:v Role:v Detailed! Full! Examples! Parameter:v Online!? ShowWindow!?
Get-Alias Name:v@0* Exclude:v Scope:v Definition:v
Get-Member Name:v@0 InputObject:v* MemberType,Type:v View:v Static! Force!
Get-Date Date,LastWriteTime:v@0* UnixTimeSeconds:v Year:v Month:v Day:v Hour:v Minute:v Second:v Millisecond:v DisplayHint:v Format:v
    UFormat:v AsUTC!
Get-Host
Get-Module Name:v@0* FullyQualifiedName:v All! ListAvailable! PSEdition:v SkipEditionCheck! Refresh! PSSession:? CimSession:?
    CimResourceUri:? CimNamespace:?
Get-PSDrive Name:v@0 LiteralName:v Scope:v PSProvider:v
Get-PSProvider PSProvider:v@0
Get-Random Maximum,Max:v@0 Minimum,Min:v InputObject:v* Count:v SetSeed:v Shuffle!
Get-SecureRandom Maximum:v@0 Minimum:v InputObject:v* Count:v
Get-Unique InputObject:v* AsString! OnType! CaseInsensitive!
Get-Culture Name:v NoUserOverrides! ListAvailable!
Get-UICulture
Get-TimeZone Name:v@0 Id:v ListAvailable!
Get-Uptime Since!
Get-ComputerInfo Property:v@0
Get-FileHash {LISTED} Algorithm:v InputStream:v
Get-Acl {LISTED} {FILTERS} Audit! AllCentralAccessPolicies! InputObject:v
Get-AuthenticodeSignature FilePath:r@0* LiteralPath:r SourcePathOrExtension:v Content:v
Get-Verb Verb:v@0 Group:v@1
Get-ExecutionPolicy Scope:v@0 List!
Get-EventLog LogName:v@0 Newest:v After:v Before:v EntryType:v Source:v Message:v InstanceId:v@1 Index:v UserName:v AsBaseObject! List!
    AsString! ComputerName,Cn:?
Get-WinEvent LogName:v@0 ListLog:v ListProvider:v ProviderName:v Path:r MaxEvents:v FilterXPath:v FilterXml:v FilterHashtable:v Force!
    Oldest! ComputerName,Cn:?
Get-HotFix Id,HFID:v@0 Description:v ComputerName,Cn:?
Get-CimInstance ClassName:v@0 Namespace:v Query:v QueryDialect:v Filter:v Property:v KeyOnly! Shallow! OperationTimeoutSec:v InputObject:v*
    ResourceUri:? CimSession:? ComputerName,Cn:?
Get-CimClass ClassName:v@0 Namespace:v@1 MethodName:v PropertyName:v QualifierName:v ComputerName:? CimSession:?
Get-WmiObject Class:v@0 Property:v@1 Filter:v Namespace,NS:v Query:v List! Recurse! Amended! ComputerName,Cn:? Credential:? AsJob!
Get-NetAdapter Name:v@0 InterfaceDescription:v InterfaceIndex:v IncludeHidden! Physical!
Get-NetIPAddress IPAddress:v@0 InterfaceIndex:v InterfaceAlias:v AddressFamily:v PrefixLength:v
Get-NetIPConfiguration InterfaceAlias:v@0 InterfaceIndex:v All! Detailed!
Get-NetIPInterface InterfaceIndex:v InterfaceAlias:v@0 AddressFamily:v
Get-NetRoute DestinationPrefix:v@0 InterfaceIndex:v InterfaceAlias:v AddressFamily:v
Get-NetTCPConnection LocalAddress:v@0 LocalPort:v@1 RemoteAddress:v RemotePort:v State:v OwningProcess:v AppliedSetting:v
Get-NetUDPEndpoint LocalAddress:v@0 LocalPort:v OwningProcess:v
Get-NetFirewallProfile Name:v@0 All!
Get-NetFirewallRule Name:v@0 DisplayName:v DisplayGroup:v Enabled:v Direction:v Action:v All!
Get-NetNeighbor IPAddress:v@0 InterfaceIndex:v State:v
Get-DnsClientServerAddress InterfaceAlias:v@0 InterfaceIndex:v AddressFamily:v
Get-DnsClientCache Entry:v@0 Name:v
Get-Disk Number:v@0 FriendlyName:v
Get-Volume DriveLetter:v@0 FriendlyName:v FileSystemLabel:v
Get-Partition DiskNumber:v@0 PartitionNumber:v DriveLetter:v
Get-PhysicalDisk FriendlyName:v@0
Get-ScheduledTask TaskName:v@0 TaskPath:v@1
Get-ScheduledTaskInfo TaskName:v@0 TaskPath:v@1 InputObject:v*
Get-LocalUser Name:v@0 SID:v
Get-LocalGroup Name:v@0 SID:v
Get-LocalGroupMember Group,Name:v@0 Member:v@1 SID:v
Get-Printer Name:v@0
Get-PnpDevice FriendlyName:v InstanceId:v@0 Class:v PresentOnly! Status:v
Get-MpPreference
Get-MpComputerStatus
Get-AppxPackage Name:v@0 Publisher:v@1 AllUsers!
Get-WindowsOptionalFeature FeatureName:v Online!
Get-Counter Counter:v@0 SampleInterval:v MaxSamples:v ListSet:v Continuous! ComputerName,Cn:?
Get-Job Id:v@0 Name:v InstanceId:v State:v IncludeChildJob! ChildJobState:v HasMoreData:v Before:v After:v Newest:v Command:v
Receive-Job Job:v@0* Id:v Name:v Keep! Wait! NoRecurse! AutoRemoveJob! WriteEvents! WriteJobInResults!
Wait-Job Job:v@0* Id:v Name:v Any! Timeout:v Force! State:v
Wait-Process Name:v@0* Id:v Timeout:v InputObject:v
Get-Package Name:v@0 RequiredVersion:v MinimumVersion:v MaximumVersion:v AllVersions! ProviderName:v
Get-InstalledModule Name:v@0 MinimumVersion:v AllVersions!
Get-PSRepository Name:v@0
Get-TypeData TypeName:v@0
Get-FormatData TypeName:v@0
Get-Error Newest:v@0
Get-PSCallStack
Get-Event SourceIdentifier:v@0
Get-ControlPanelItem Name:v@0
Get-PSReadLineOption
Get-Runspace Name:v@0 Id:v
ConvertTo-Json InputObject:v@0* Depth:v Compress! EnumsAsStrings! AsArray! EscapeHandling:v
ConvertFrom-Json InputObject:v@0* AsHashtable! Depth:v NoEnumerate! DateKind:v
ConvertTo-Csv InputObject:v@0* Delimiter:v@1 UseCulture! NoTypeInformation,NTI! IncludeTypeInformation! QuoteFields:v UseQuotes:v NoHeader!
ConvertFrom-Csv InputObject:v@0* Delimiter:v@1 UseCulture! Header:v
ConvertTo-Xml InputObject:v@0* Depth:v NoTypeInformation! As:v
ConvertTo-Html Property:x@0 InputObject:v* Body:v Head:v Title:v As:v CssUri:v Fragment! PreContent:v PostContent:v
ConvertFrom-StringData StringData:v@0* Delimiter:v
ConvertFrom-Markdown {PATHS} InputObject:v AsVT100EncodedString!
Import-Csv {PATHS} Delimiter:v@1 UseCulture! Header:v Encoding:v
Import-PowerShellDataFile {PATHS}
Test-Json Json:v@0* Path:r Schema:v@1 SchemaFile:r Options:v
New-TimeSpan Start,LastWriteTime:v@0 End:v@1 Days:v Hours:v Minutes:v Seconds:v
New-Guid Empty! InputObject:v
Start-Sleep Seconds:v@0* Milliseconds,ms:v Duration:v
Set-StrictMode Version:v Off!
Get-Variable Name:v@0 ValueOnly! Include:v Exclude:v Scope:v
Measure-Command Expression:x@0 InputObject:v*
Select-Xml XPath:v@0 Path:r@1* LiteralPath:r Xml:v Content:v Namespace:v
Test-ModuleManifest Path:r@0*
Get-Clipboard Raw! Format:? TextFormatType:v Delimiter:v
Show-Markdown {PATHS} InputObject:v
Tee-Object FilePath,Path:w@0 LiteralPath:w Append! Encoding:v Variable:v InputObject:v*
"""

CHANGING = f"""
New-Item Path:w@0 Name:v ItemType,Type:v Value,Target:v* Force! Credential:? UseTransaction!
Add-Content Path:w@0 LiteralPath,PSPath,LP:w Value:v@1* {FILTERS} Force! PassThru! NoNewline! Encoding:v AsByteStream! Stream:? Credential:?
Set-Content Path:w@0 LiteralPath,PSPath,LP:w Value:v@1* {FILTERS} Force! PassThru! NoNewline! Encoding:v AsByteStream! Stream:? Credential:?
Clear-Content Path:w@0* LiteralPath,PSPath,LP:w {FILTERS} Force! Stream:? Credential:?
Clear-Item Path:w@0* LiteralPath,PSPath,LP:w {FILTERS} Force! Credential:?
Set-Item Path:w@0* LiteralPath,PSPath,LP:w Value:v@1 {FILTERS} Force! PassThru! Credential:?
Set-ItemProperty Path:w@0* LiteralPath,PSPath,LP:w Name,PSProperty:v@1 Value:v@2 Type:v InputObject:v {FILTERS} Force! PassThru!
    Credential:?
New-ItemProperty Path:w@0* LiteralPath,PSPath,LP:w Name,PSProperty:v@1 PropertyType,Type:v Value:v {FILTERS} Force! Credential:?
Remove-ItemProperty Path:w@0* LiteralPath,PSPath,LP:w Name,PSProperty:v@1 {FILTERS} Force! Credential:?
Clear-ItemProperty Path:w@0* LiteralPath,PSPath,LP:w Name,PSProperty:v@1 {FILTERS} Force! Credential:?
Rename-ItemProperty Path:w@0* LiteralPath,PSPath,LP:w Name,PSProperty:v@1 NewName:v@2 {FILTERS} Force! PassThru! Credential:?
Copy-ItemProperty Path:r@0* LiteralPath,PSPath,LP:r Name,PSProperty:v@2 Destination:w@1 {FILTERS} Force! PassThru! Credential:?
Move-ItemProperty Path:w@0* LiteralPath,PSPath,LP:w Name,PSProperty:v@2 Destination:w@1 {FILTERS} Force! PassThru! Credential:?
Copy-Item Path:r@0* LiteralPath,PSPath,LP:r Destination:w@1 Container! Recurse! {FILTERS} Force! PassThru! Credential:? FromSession:?
    ToSession:?
Move-Item Path:w@0* LiteralPath,PSPath,LP:w Destination:w@1 {FILTERS} Force! PassThru! Credential:?
Rename-Item Path:w@0* LiteralPath,PSPath,LP:w NewName:w@1 Force! PassThru! Credential:?
Remove-Item Path:d@0* LiteralPath,PSPath,LP:d {FILTERS} Recurse! Force! Stream:v Credential:? UseTransaction!
Out-File FilePath,Path:w@0 LiteralPath,PSPath,LP:w Encoding:v@1 Append! Force! NoClobber,NoOverwrite! Width:v NoNewline! InputObject:v*
Export-Csv Path:w@0 LiteralPath,PSPath,LP:w InputObject:v* Force! NoClobber,NoOverwrite! Encoding:v Append! Delimiter:v@1 UseCulture!
    NoTypeInformation,NTI! IncludeTypeInformation,ITI! QuoteFields:v UseQuotes:v NoHeader!
Export-Clixml Path:w@0 LiteralPath,PSPath,LP:w InputObject:v* Depth:v Force! NoClobber,NoOverwrite! Encoding:v
Import-Clixml {PATHS} IncludeTotalCount! Skip:v First:v
Compress-Archive Path:r@0* LiteralPath,PSPath,LP:r DestinationPath:w@1 CompressionLevel:v Update! Force! PassThru!
Expand-Archive Path:r@0* LiteralPath,PSPath,LP:r DestinationPath:w@1 Force! PassThru!
Start-Transcript Path:w@0 LiteralPath:w OutputDirectory:w Append! Force! NoClobber! IncludeInvocationHeader! UseMinimalHeader!
Stop-Transcript
New-TemporaryFile
Set-Clipboard Value:v@0* Append! LiteralPath:v Path:v AsOSC52!
Remove-Job Job:v@0* Id:v Name:v Force! State:v
Stop-Job Job:v@0* Id:v Name:v PassThru! State:v
Invoke-ScriptAnalyzer Path:r@0 ScriptDefinition:v IncludeRule:v ExcludeRule:v Severity:v Recurse! Settings:v
Invoke-Pester Path,Script:r@0 Output:v Tag,Tags:v ExcludeTag:v CI! PassThru! EnableExit! Show:v FullNameFilter:v TestName:v Container:v
    Configuration:?
Install-Module Name:v@0* MinimumVersion:v MaximumVersion:v RequiredVersion:v Repository:v Scope:v AllowClobber! Force! AllowPrerelease!
    AcceptLicense! PassThru! SkipPublisherCheck!? Credential:? Proxy:?
Install-PSResource Name:v@0* Version:v Prerelease! Repository:v Scope:v TrustRepository! Reinstall! Quiet! AcceptLicense!
Install-Script Name:v@0* MinimumVersion:v RequiredVersion:v Repository:v Scope:v Force! AcceptLicense!
Update-Module Name:v@0* RequiredVersion:v Scope:v Force! AcceptLicense!
Save-Module Name:v@0* Path:w@1 RequiredVersion:v Repository:v Force! AcceptLicense!
Find-Module Name:v@0* Repository:v Tag:v AllVersions!
Find-Package Name:v@0* Source:v ProviderName:v
Test-Connection TargetName,ComputerName,Cn:u@0* Count:v Delay:v Quiet! IPv4! IPv6! TimeoutSeconds:v BufferSize:v TcpPort:v Ping! Traceroute!
    Repeat! ResolveDestination! MaxHops:v Source:?
Test-NetConnection ComputerName,RemoteAddress,Cn:u@0* Port,RemotePort:v CommonTCPPort:v@1 TraceRoute! InformationLevel:v Hops:v
Resolve-DnsName Name:u@0* Type:v@1 Server:v DnsOnly! CacheOnly! QuickTimeout! NoHostsFile!
Invoke-WebRequest Uri:u@0 UseBasicParsing! Method:v CustomMethod,CM:v Body:b* Form:b Headers:b InFile:i OutFile:w PassThru! Resume!
    ContentType:v UserAgent:v SessionVariable,SV:v WebSession:v TimeoutSec,ConnectionTimeoutSeconds:v OperationTimeoutSeconds:v
    MaximumRedirection:v MaximumRetryCount:v RetryIntervalSec:v DisableKeepAlive! HttpVersion:v SslProtocol:v SkipHttpErrorCheck!
    TransferEncoding:v NoProxy! AllowInsecureRedirect! PreserveHttpMethodOnRedirect! PreserveAuthorizationOnRedirect!?
    SkipCertificateCheck!? SkipHeaderValidation! AllowUnencryptedAuthentication!? UseDefaultCredentials!? Credential:? Certificate:?
    CertificateThumbprint:? Token:? Authentication:? Proxy:? ProxyCredential:? ProxyUseDefaultCredentials!? UnixSocket:? PipeName:?
Invoke-RestMethod Uri:u@0 UseBasicParsing! Method:v CustomMethod,CM:v Body:b* Form:b Headers:b InFile:i OutFile:w PassThru! Resume!
    ContentType:v UserAgent:v SessionVariable,SV:v WebSession:v TimeoutSec,ConnectionTimeoutSeconds:v OperationTimeoutSeconds:v
    MaximumRedirection:v MaximumRetryCount:v RetryIntervalSec:v DisableKeepAlive! HttpVersion:v SslProtocol:v SkipHttpErrorCheck!
    TransferEncoding:v NoProxy! FollowRelLink,FL! MaximumFollowRelLink,ML:v ResponseHeadersVariable,RHV:v StatusCodeVariable:v
    AllowInsecureRedirect! PreserveHttpMethodOnRedirect! PreserveAuthorizationOnRedirect!? SkipCertificateCheck!? SkipHeaderValidation!
    AllowUnencryptedAuthentication!? UseDefaultCredentials!? Credential:? Certificate:? CertificateThumbprint:? Token:? Authentication:?
    Proxy:? ProxyCredential:? ProxyUseDefaultCredentials!? UnixSocket:? PipeName:?
Start-BitsTransfer Source:u@0* Destination:w@1 TransferType:v DisplayName:v Description:v Priority:v Asynchronous! Dynamic! Suspended!
    HttpMethod:v Credential:? ProxyUsage:? Authentication:?
Send-MailMessage To:v@0 Subject:v@1 Body:b@2 SmtpServer,ComputerName:u@3 From:v Attachments:i* Cc:v Bcc:v BodyAsHtml,BAH! Encoding:v Port:v
    UseSsl! Priority:v Credential:?
"""

# Read by the code beside this data; their parameters stand here so that short names are told as PowerShell tells them.
STRUCTURAL = """
Invoke-Expression Command:x@0*
Invoke-Command ScriptBlock,Command:x@0 FilePath:r ArgumentList,Args:v InputObject:v* NoNewScope! AsJob! JobName:v ThrottleLimit:v
    HideComputerName! ComputerName,Cn:? Session:? ConnectionUri:? HostName:? UserName:? SSHConnection:? VMId:? VMName:? ContainerId:?
    Credential:? ConfigurationName:? RunAsAdministrator!? KeyFilePath:? InDisconnectedSession!? SessionOption:? Authentication:? UseSSL!
    Port:?
Start-Job ScriptBlock,Command:x@0 FilePath:r LiteralPath:r InitializationScript:x ArgumentList,Args:v InputObject:v* Name:v Type:v
    WorkingDirectory:v PSVersion:v RunAs32! DefinitionName:? DefinitionPath:? Credential:? Authentication:?
Start-ThreadJob ScriptBlock:x@0 FilePath:r InitializationScript:x ArgumentList:v InputObject:v* Name:v ThrottleLimit:v StreamingHost:v
Start-Process FilePath,PSPath,Path:v@0 ArgumentList,Args:v@1 WorkingDirectory:v NoNewWindow,nnw! Wait! PassThru! WindowStyle:v Verb:?
    RedirectStandardInput,RSI:r RedirectStandardOutput,RSO:w RedirectStandardError,RSE:w UseNewEnvironment! LoadUserProfile,Lup!?
    Credential,RunAs:? Environment:?
New-Object TypeName:v@0 ArgumentList,Args:v@1 Property:v ComObject:v Strict!
Set-Location Path:v@0* LiteralPath,PSPath,LP:v PassThru! StackName:v
Push-Location Path:v@0* LiteralPath,PSPath,LP:v PassThru! StackName:v
Pop-Location PassThru! StackName:v
Set-Alias Name:v@0 Value:v@1 Description:v Option:v PassThru! Scope:v Force!
New-Alias Name:v@0 Value:v@1 Description:v Option:v PassThru! Scope:v Force!
Set-Variable Name:v@0 Value:v@1* Include:v Exclude:v Description:v Option:v Force! Visibility:v PassThru! Scope:v
New-Variable Name:v@0 Value:v@1* Description:v Option:v Force! Visibility:v PassThru! Scope:v
Remove-Variable Name:v@0* Include:v Exclude:v Force! Scope:v
Clear-Variable Name:v@0* Include:v Exclude:v Force! PassThru! Scope:v
Import-Module Name:v@0* FullyQualifiedName:v Assembly:? Global! Prefix:v Function:v Cmdlet:v Variable:v Alias:v Force! PassThru!
    AsCustomObject! MinimumVersion:v MaximumVersion:v RequiredVersion:v ModuleInfo:? ArgumentList,Args:v DisableNameChecking! NoClobber!
    Scope:v SkipEditionCheck! UseWindowsPowerShell! PSSession:? CimSession:?
Remove-Module Name:v@0* FullyQualifiedName:v Force! ModuleInfo:v
"""

ALIASES: dict[str, str] = {
    alias: target
    for line in """
Get-ChildItem gci dir ls|Get-Content gc cat type|Get-Item gi|Get-ItemProperty gp|Get-ItemPropertyValue gpv|Get-Location gl pwd
Set-Location sl cd chdir|Push-Location pushd|Pop-Location popd|Resolve-Path rvpa|Convert-Path cvpa|Select-String sls|Select-Object select
Sort-Object sort
Where-Object where ?|ForEach-Object foreach %|Measure-Object measure|Group-Object group|Compare-Object compare diff|Format-Table ft
Format-List fl|Format-Wide fw|Format-Custom fc|Format-Hex fhx|Out-Host oh|Out-GridView ogv|Out-Printer lp|Write-Output echo write|Tee-Object tee
Get-Process gps ps|Stop-Process spps kill|Start-Process saps start|Get-Service gsv|Start-Service sasv|Stop-Service spsv|Get-Command gcm
Get-Help help man|Get-Alias gal|Get-Member gm|Get-Module gmo|Get-Variable gv|Get-PSDrive gdr|Get-Unique gu|Get-History ghy h history
Get-WmiObject gwmi|Get-CimInstance gcim|Get-CimClass gcls|Get-CimAssociatedInstance gcai|Remove-CimInstance rcim|New-CimInstance ncim
Set-CimInstance scim|Invoke-CimMethod icim|Invoke-WmiMethod iwmi|Remove-WmiObject rwmi|Set-WmiInstance swmi|Get-ComputerInfo gin|Get-TimeZone gtz
Remove-Item ri rm del erase rd rmdir|Move-Item mi mv move|Copy-Item ci cpi cp copy|Rename-Item rni ren|New-Item ni|Set-Item si|Invoke-Item ii
Clear-Item cli|Clear-Content clc|Set-Content sc|Add-Content ac|Clear-ItemProperty clp|Copy-ItemProperty cpp|Move-ItemProperty mp
Remove-ItemProperty rp|Rename-ItemProperty rnp|Set-ItemProperty sp|Import-Csv ipcsv|Export-Csv epcsv|Export-Alias epal|Import-Alias ipal
Invoke-Expression iex|Invoke-Command icm|Invoke-WebRequest iwr curl wget|Invoke-RestMethod irm|Invoke-History ihy r|Enter-PSSession etsn
Exit-PSSession exsn|New-PSSession nsn|Remove-PSSession rsn|Get-PSSession gsn|Connect-PSSession cnsn|Disconnect-PSSession dnsn|Receive-PSSession rcsn
Export-PSSession epsn|Import-PSSession ipsn|New-PSSessionConfigurationFile npssc|Start-Job sajb|Stop-Job spjb|Receive-Job rcjb|Wait-Job wjb
Remove-Job rjb|Get-Job gjb|Resume-Job rujb|Suspend-Job sujb|Set-Alias sal|New-Alias nal|Set-Variable sv set|New-Variable nv|Remove-Variable rv
Clear-Variable clv|Import-Module ipmo|Remove-Module rmo|New-Module nmo|Start-Sleep sleep|Get-Clipboard gcb|Set-Clipboard scb|Clear-Host cls clear
Clear-History clhy|Add-PSSnapin asnp|Get-PSSnapin gsnp|Remove-PSSnapin rsnp|New-PSDrive ndr mount|Remove-PSDrive rdr|Set-PSBreakpoint sbp
Get-PSBreakpoint gbp|Remove-PSBreakpoint rbp|Enable-PSBreakpoint ebp|Disable-PSBreakpoint dbp|Get-PSCallStack gcs|Show-Command shcm|Trace-Command trcm
Set-TimeZone stz|Get-NetIPConfiguration gip|Test-NetConnection tnc|ConvertFrom-String cfs|Get-Error gerr
New-Item mkdir md|Install-Module inmo|Update-Module udmo|Find-Module fimo|Import-PSSession ipsn
""".replace("\n", "|").split("|")
    if line
    for target, *names in [line.split()]
    for alias in names
}

# The names that no setting of a workspace makes less than a question, whatever they are called by.
DESTRUCTIVE_CMDLETS = frozenset(
    ("remove-item", "move-item", "stop-process", "restart-computer", "stop-computer", "clear-content", "clear-item", "set-content",
     "remove-itemproperty", "stop-service", "remove-service", "invoke-expression", "format-volume")
)  # fmt: skip

# Cmdlets that destroy what is on a disk, or all ways back.
FATAL_CMDLETS = {
    **dict.fromkeys(("format-volume", "clear-disk", "initialize-disk", "remove-partition", "reset-physicaldisk", "remove-virtualdisk",
                     "remove-storagepool", "set-disk", "resize-partition"), ("overwrites_device", "it destroys what is on a disk or volume")),
    **dict.fromkeys(("remove-shadowcopy", "remove-wbbackupset", "remove-vmsnapshot", "disable-computerrestore", "remove-wbpolicy",
                     "remove-wbbackuptarget"), ("deletes_backups", "it deletes what could bring files back")),
}  # fmt: skip

# Cmdlets that are not listed and only say what they would do when they are asked with `-WhatIf`.
SHOW_ONLY = frozenset(
    ("stop-process", "stop-service", "start-service", "restart-service", "set-service", "suspend-service", "new-service", "remove-service",
     "restart-computer", "stop-computer", "clear-recyclebin", "clear-eventlog", "limit-eventlog", "remove-eventlog", "set-acl", "set-executionpolicy",
     "remove-localuser", "new-localuser", "set-localuser", "add-localgroupmember", "remove-localgroupmember", "unregister-scheduledtask",
     "remove-psdrive", "new-psdrive", "uninstall-module", "uninstall-package", "format-volume", "clear-disk", "remove-partition",
     "set-timezone", "set-date")
)  # fmt: skip

# Verbs that change a system when what they change is not listed above.
ACTING_VERBS = frozenset(
    ("remove", "stop", "set", "disable", "enable", "uninstall", "install", "clear", "format", "reset", "restart", "revoke", "unregister", "register",
     "invoke", "enter", "new", "add", "start", "suspend", "resume", "grant", "block", "unblock", "connect", "disconnect", "mount", "dismount",
     "initialize", "repair", "restore", "backup", "export", "import", "send", "publish", "update", "rename", "move", "copy", "push", "pop", "debug",
     "exit", "limit", "lock", "unlock", "merge", "join", "protect", "unprotect", "optimize", "deny", "approve", "assert", "complete", "undo", "use")
)  # fmt: skip

# What such cmdlets change, by their noun; codes and words of reasons.
SYSTEM_NOUNS = {
    **dict.fromkeys(("process", "computer"), ("ends", "it ends programs or the system")),
    **dict.fromkeys(("service",), ("service", "it changes a service of the system")),
    **dict.fromkeys(("executionpolicy",), ("execution_policy", "it changes which scripts may run")),
    **dict.fromkeys(("mppreference", "mpthreat", "mpscan", "mpsignature"), ("defender", "it changes the protection against malware")),
    **dict.fromkeys(("scheduledtask", "scheduledjob", "jobtrigger", "wmievent"), ("persistence", "it makes something run later, unasked")),
    **dict.fromkeys(("localuser", "localgroup", "localgroupmember", "aduser", "adgroupmember", "adaccountpassword"), ("users",
    "it changes users or groups")),
    **dict.fromkeys(("pssession", "psremoting", "wsmaninstance", "psexec"), ("remoting", "it acts on another machine, or lets others act here")),
    **dict.fromkeys(("type", "member"), ("defines_code", "it brings in code of its own")),
    **dict.fromkeys(("netfirewallrule", "netfirewallprofile", "netipaddress", "dnsclientserveraddress", "netadapter"), ("network_settings",
    "it changes the network")),
    **dict.fromkeys(("acl",), ("permissions", "it changes who may do what")),
    **dict.fromkeys(("eventlog", "history", "recyclebin"), ("history", "it destroys records or what could be brought back")),
    **dict.fromkeys(("history",), ("opaque_code", "it runs or changes what was run before")),
    **dict.fromkeys(("item",), ("opens", "it opens a file with whatever program is set for it")),
    **dict.fromkeys(("pfxcertificate", "certificate"), ("certificate", "it changes or hands out certificates and keys")),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CmdletParameter:
    """Parameter of a cmdlet: `kind` is its letter, empty for a switch; `beyond` makes the command require approval."""

    name: str
    kind: str
    position: int | None
    piped: bool
    beyond: bool
    dynamic: bool = False


@dataclass(frozen=True, slots=True)
class CmdletSpec:
    """A command and its parameters, by every name they have, in lower case."""

    name: str
    grade: FindingGrade
    options: dict[str, CmdletParameter]
    positions: tuple[CmdletParameter, ...]

    def option(self, name: str) -> CmdletParameter | None:
        """Return the parameter of that name or unique prefix; None if no parameter matches, or more than one."""
        name = name.lower()
        if (exact := self.options.get(name)) is not None:
            return exact
        found = {option.name: option for known, option in self.options.items() if known.startswith(name)}
        fixed = [option for option in found.values() if not option.dynamic]
        return (fixed or [*found.values()])[0] if len(fixed or found) == 1 else None


def find_cmdlet(name: str) -> CmdletSpec | None:
    """Return the command of that canonical name; None if it is not listed."""
    return _load_cmdlets().get(name.lower())


# A line that starts with space goes on with the one before it.
LINE_CONTINUATION = re.compile(r"\n +")


@cache
def _load_cmdlets() -> dict[str, CmdletSpec]:
    tables = ((READING, FindingGrade.READ), (CHANGING, FindingGrade.EFFECT), (STRUCTURAL, FindingGrade.READ))
    found = [
        _parse_cmdlet(line, grade)
        for table, grade in tables
        for line in LINE_CONTINUATION.sub(" ", table).splitlines()
        if line
    ]
    return {cmdlet.name.lower(): cmdlet for cmdlet in found}


@cache
def _create_common_parameters(changing: bool) -> dict[str, CmdletParameter]:
    words = f"{COMMON} {SHOULD_PROCESS}" if changing else COMMON
    return {name.lower(): option for word in words.split() for name, option in _parse_parameter(word)}


def _parse_cmdlet(line: str, grade: FindingGrade) -> CmdletSpec:
    name, *words = line.split()
    own = [pair for word in words for pair in _parse_parameter(word)]
    options = {known.lower(): option for known, option in own}
    positions = sorted({o for _, o in own if o.position is not None}, key=lambda option: option.position or 0)
    changing = grade is not FindingGrade.READ or not name.startswith("Get-")
    return CmdletSpec(name, grade, {**_create_common_parameters(changing), **options}, tuple(positions))


def _parse_parameter(word: str) -> list[tuple[str, CmdletParameter]]:
    dynamic, word = word.startswith("~"), word.removeprefix("~")
    names, mark = (
        (word[:at], word[at:]) if (at := min(i for i in (word.find("!"), word.find(":")) if i > 0)) else (word, "")
    )
    piped = mark.endswith("*")
    mark, _, position = mark.rstrip("*").partition("@")
    kind = mark[1:] if mark.startswith(":") else ""
    first, *others = names.split(",")
    option = CmdletParameter(
        first, kind.replace("?", "v") if kind else "", int(position) if position else None, piped, "?" in mark, dynamic
    )
    return [(known, option) for known in (first, *others)]
