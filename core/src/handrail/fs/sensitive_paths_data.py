"""The tables of `known_places`: what a place is, and below it the places, in lower case, two spaces apart.

Sources: the manuals of the programs named; https://attack.mitre.org (T1547, T1546, T1552, T1555) for classes of places.
"""

from __future__ import annotations

# Folders and files that keep secrets, wherever they stand.
SECRET_PLACES = """
private keys:
    .ssh  .gnupg  .pki  .gpg  appdata/roaming/gnupg  appdata/roaming/ssh  programdata/ssh  etc/ssl/private
    etc/pki/tls/private  etc/ipsec.secrets  etc/ipsec.d/private  etc/swanctl  etc/wireguard  etc/openvpn
    etc/letsencrypt  etc/krb5.keytab  .config/sops/age  .config/age  .age  .minisign  etc/dropbear  etc/tinc  .tsh
    .step/secrets  .local/share/mkcert  .putty  .bitcoin  .ethereum/keystore  .electrum  .monero  .config/solana
    .config/exodus  .config/ledger live  .zcash  .litecoin  .dogecoin  .gnunet  .tor/keys  var/lib/tor
passwords:
    etc/shadow  etc/shadow-  etc/gshadow  etc/gshadow-  etc/master.passwd  etc/security/opasswd  etc/tcb
    var/backups/shadow.bak  var/backups/gshadow.bak  etc/shadow.bak  etc/shadow~  etc/spwd.db
    etc/networkmanager/system-connections  etc/wpa_supplicant  var/lib/iwd  var/lib/networkmanager/secret_key
    etc/ppp/chap-secrets  etc/ppp/pap-secrets  etc/sssd  var/lib/sss  var/lib/samba/private  etc/samba/smbpasswd
    etc/mysql/debian.cnf  etc/exim4/passwd.client  etc/postfix/sasl_passwd  etc/pam_ldap.secret
    etc/libnss-ldap.secret  etc/rndc.key  etc/bind/rndc.key  .local/share/keyrings  .gnome2/keyrings
    .password-store  .local/share/kwalletd  .kde/share/apps/kwallet  .config/keepassxc  .cache/keepassxc
    .config/keepass  .local/share/keepass  .config/bitwarden  .config/bitwarden cli  .config/rbw  .local/share/rbw
    .config/1password  .config/op  .op  .1password  .lastpass  .local/share/lpass  .config/lpass  .lpass  .dashlane
    .config/dashlane-cli  .config/enpass  .local/share/enpass  .config/nordpass  .config/proton pass
    .config/proton-pass  .config/gopass  .local/share/gopass  .config/keeper  .keeper  .config/buttercup
    .local/share/pass  library/keychains  var/db/dslocal  library/application support/1password
    library/application support/bitwarden  library/application support/lastpass
    library/application support/dashlane  library/application support/keepassxc  library/accounts
    library/application support/com.apple.tcc  library/group containers/2bua8c4s2c.com.1password
    library/identityservices  system32/config  windows/repair  windows/ntds  windows/system32/microsoft/protect
    windows/serviceprofiles  system volume information  microsoft/credentials  microsoft/protect  microsoft/vault
    microsoft/crypto  microsoft/systemcertificates  microsoft/tokenbroker  microsoft/oneauth
    microsoft/identitycache  .identityservice  microsoft/wlansvc  appdata/local/1password  appdata/roaming/1password
    appdata/roaming/bitwarden  appdata/roaming/keepass  appdata/local/keepassxc  appdata/roaming/keepassxc
    appdata/local/dashlane  appdata/local/lastpass  appdata/roaming/enpass  panther/unattend.xml
    sysprep/unattend.xml  sysprep/sysprep.xml  panther/unattend/unattend.xml  windows/panther  pagefile.sys
    hiberfil.sys  swapfile.sys
rules of privilege:
    etc/sudoers  etc/sudoers.d  etc/doas.conf  etc/polkit-1/localauthority
secrets of a service:
    run/secrets  var/run/secrets  run/credentials  etc/credstore  etc/credstore.encrypted  etc/kubernetes/pki
    etc/kubernetes/admin.conf  var/lib/kubelet  etc/rancher  var/lib/rancher  etc/docker/key.json
    etc/grafana/grafana.ini  etc/vault.d  etc/consul.d  var/lib/jenkins/secrets  .jenkins/secrets  var/lib/mysql
    var/lib/postgresql  etc/gitlab/gitlab-secrets.json  etc/ansible/vault_pass
cloud credentials:
    .aws  .azure  .config/gcloud  appdata/roaming/gcloud  .kube  .oci  .config/doctl  .boto  .s3cfg  .fly
    .config/rclone  .databrickscfg  .config/heroku  .terraform.d/credentials.tfrc.json  .ibmcloud  .bluemix
    .vault-token  .config/scw  .config/hcloud  .config/linode-cli  .config/configstore  .config/vercel
    .local/share/com.vercel.cli  .vercel/auth.json  .config/netlify  .netlify/config.json  .config/.wrangler
    .wrangler/config  .cloudflared  .config/ngrok  .ngrok2  .pulumi/credentials.json  .config/stripe
    .config/railway  .railway  .config/exoscale  .config/yandex-cloud  .aliyun  .tccli  .config/openstack
    .config/upctl  .config/supabase  .supabase/access-token  .config/firebase  .minikube  .config/ovh.conf
    .ovh.conf  .config/b2  .b2_account_info  .mc/config.json  .rclone.conf  .config/azure  .config/ibmcloud
    .config/sentry  .tfstate  .snowflake  .snowsql  .dbt/profiles.yml  .config/wandb  .kaggle  .huggingface
    .cache/huggingface/token  .cache/huggingface/stored_tokens
credentials:
    .docker/config.json  .dockercfg  .config/containers/auth.json  containers/auth.json  .config/gh
    .config/glab-cli  .config/hub  appdata/roaming/github cli  .config/git/credentials  .cargo/credentials
    .cargo/credentials.toml  .gem/credentials  .bundle/config  .config/pypoetry/auth.toml  .config/uv/credentials
    .m2/settings.xml  .m2/settings-security.xml  .gradle/gradle.properties  .composer/auth.json
    .config/composer/auth.json  .nuget/nuget.config  nuget/nuget.config  .ivy2/.credentials  .sbt/credentials
    .sbt/1.0/credentials.sbt  .hex/hex.config  .pub-cache/credentials.json  .config/dart/pub-credentials.json
    .subversion/auth  .svn/auth  .config/filezilla  filezilla/sitemanager.xml  filezilla/recentservers.xml
    .config/winscp  .remmina  .local/share/remmina  .config/remmina  .config/sqldeveloper  .dbeaver4
    .local/share/dbeaverdata  .config/dbeaver  appdata/roaming/dbeaverdata  .config/mycli  .pgadmin  .config/pgcli
    .config/redisinsight  .config/lftp  .ncftp  .davfs2  .config/davfs2  .config/github-copilot
    github-copilot/hosts.json  .config/goose  .claude/.credentials.json  .codex/auth.json  .gemini/oauth_creds.json
    etc/npmrc  etc/yarnrc  .config/pnpm/rc  .config/pnpm/auth.ini  library/preferences/pnpm/rc  .rye/config.toml
    conda-meta/state  etc/conda/activate.d/env_vars.sh  etc/conda/deactivate.d/env_vars.sh
    .config/openai  .config/anthropic  .config/hatch  .config/rustup/credentials  .config/circleci
    .circleci/cli.yml  .travis  .config/atlassian  .config/jira  .config/code/user/globalstorage
    code/user/globalstorage  .config/cursor/user/globalstorage  .config/joplin  .config/twine  .irssi  .weechat
    .config/weechat  .purple  .config/hexchat  .mutt  .config/mutt  .config/neomutt  .config/aerc  .config/himalaya
    .config/msmtp  appdata/roaming/mremoteng  appdata/roaming/winscp.ini
    appdata/local/microsoft/remote desktop connection manager
a browser profile:
    .mozilla  .thunderbird  .librewolf  .waterfox  .floorp  .zen  .mullvad  .tor-browser  .local/share/torbrowser
    .moonchild productions  .icecat  .config/google-chrome  .config/google-chrome-beta
    .config/google-chrome-unstable  .config/google-chrome-for-testing  .config/chromium  .config/bravesoftware
    .config/vivaldi  .config/vivaldi-snapshot  .config/microsoft-edge  .config/microsoft-edge-dev
    .config/microsoft-edge-beta  .config/opera  .config/opera-beta  .config/opera-developer  .config/yandex-browser
    .config/yandex-browser-beta  .config/thorium  .config/arc  .config/naver-whale  .config/ungoogled-chromium
    .config/falkon  .config/qutebrowser  .local/share/qutebrowser  .local/share/epiphany  .config/epiphany
    .config/midori  .config/konqueror  .local/share/falkon  .config/librewolf  .config/mozilla  snap/firefox
    snap/chromium  snap/brave  snap/opera  .var/app/org.mozilla.firefox  .var/app/com.google.chrome
    .var/app/org.chromium.chromium  .var/app/com.brave.browser  .var/app/com.microsoft.edge
    .var/app/io.gitlab.librewolf-community  .var/app/com.opera.opera  .var/app/com.vivaldi.vivaldi
    .var/app/org.mozilla.thunderbird  application support/google/chrome  application support/google/chrome beta
    application support/google/chrome canary  application support/chromium  application support/firefox
    application support/librewolf  application support/zen  application support/waterfox
    application support/bravesoftware  application support/microsoft edge  application support/vivaldi
    application support/arc  application support/com.operasoftware.opera  application support/orion
    application support/thunderbird  library/safari  library/cookies  library/webkit  library/httpstorages
    library/containers/com.apple.safari  google/chrome/user data  google/chrome beta/user data
    google/chrome sxs/user data  chromium/user data  microsoft/edge/user data  microsoft/edge beta/user data
    bravesoftware/brave-browser  vivaldi/user data  yandex/yandexbrowser  opera software  mozilla/firefox
    mozilla/icecat  thunderbird/profiles  librewolf/profiles  waterfox/profiles  zen/profiles
    microsoft/windows/inetcookies  microsoft/windows/webcache  packages/microsoft.microsoftedge_8wekyb3d8bbwe
    torbrowser/data/browser
private messages:
    .config/signal  .config/slack  .config/discord  .config/discordcanary  .config/element
    .config/microsoft/microsoft teams  .config/teams  .config/teams-for-linux  .local/share/telegramdesktop
    .telegramdesktop  .config/whatsapp  .config/session  .config/wire  .config/threema  .zoom  .config/skypeforlinux
    .config/mattermost  .config/rocket.chat  .config/evolution  .local/share/evolution  .cache/evolution
    .local/share/geary  .kde/share/apps/kmail2  .local/share/local-mail  library/messages  library/mail
    library/application support/signal  library/application support/slack  library/application support/discord
    library/application support/telegram desktop  library/group containers/group.com.apple.notes
    library/group containers/group.net.whatsapp.whatsapp.shared  library/application support/addressbook
    appdata/roaming/signal  appdata/roaming/slack  appdata/roaming/discord  appdata/roaming/telegram desktop
    appdata/local/microsoft/outlook  appdata/roaming/microsoft/teams  var/mail  var/spool/mail
a history of commands:
    .local/share/fish/fish_history  .config/fish/fish_history  .lesshst  .viminfo  .local/state/nvim/shada
    .local/share/nvim/shada  .zsh_sessions  .bash_sessions  .config/nushell/history.txt
    .config/nushell/history.sqlite3  .local/share/xonsh  .local/share/atuin  .local/share/mcfly
    .local/share/powershell/psreadline  powershell/psreadline  .histfile  .zhistory  .zsh_history  .sh_history
    .local/share/recently-used.xbel
"""

# Names of files that keep secrets in any folder.
SECRET_NAMES = """
a private key:
    id_rsa  id_dsa  id_ecdsa  id_ed25519  id_ecdsa_sk  id_ed25519_sk  id_xmss  wallet.dat  secring.gpg  privkey.pem
settings with secrets:
    .env  .dev.vars  .secrets  .htpasswd  .htdigest  secrets.toml  secrets.yml  secrets.yaml  secrets.json
    .vault_pass  .vault-password  vault_pass.txt  terraform.tfstate  terraform.tfstate.backup  secrets.tfvars
    local.settings.json
credentials:
    .netrc  _netrc  .npmrc  .yarnrc  .yarnrc.yml  .pypirc  pip.conf  pip.ini  .git-credentials  .pgpass  pgpass.conf  .my.cnf  .mylogin.cnf
    .fetchmailrc  .msmtprc  .mbsyncrc  .offlineimaprc  .getmailrc  .smbcredentials  .s3cfg  .passwd-s3fs  kubeconfig
    .terraformrc  terraform.rc  application_default_credentials.json  wp-config.php  credentials.json
    .dockerconfigjson  .cifscredentials  .clasprc.json  .tidalapi  .databrickscfg  .authinfo  .authinfo.gpg
    .pgpassfile  .vnc_passwd  .x11vnc.pass  .rediscli_auth  .ldaprc  confcons.xml
a browser profile:
    logins.json  key4.db  key3.db  login data  login data for account  cookies.sqlite  web data  signons.sqlite
    formhistory.sqlite  places.sqlite  sessionstore.jsonlz4  cookies.binarycookies  login keychain
passwords:
    ntds.dit  sam.hive  ntuser.dat  usrclass.dat  master.passwd  login.keychain  login.keychain-db  system.keychain
the key of a display:
    .xauthority  .iceauthority
a history of commands:
    consolehost_history.txt  .histfile  .zhistory
"""

# In a home: what runs or is obeyed at the next login, shell or start of a program.
HOME_STARTUP = """
the next shell:
    .bashrc  .bash_profile  .bash_login  .bash_logout  .bash_aliases  .bash_functions  .bash_completion  .bashrc.d
    .bash.d  .profile  .profile.d  .inputrc  .zshrc  .zshenv  .zprofile  .zlogin  .zlogout  .zshrc.local  .zshrc.d
    .zsh  .zfunc  .config/zsh  .kshrc  .mkshrc  .cshrc  .tcshrc  .login  .logout  .shrc  .shinit  .env.sh  .aliases
    .aliasrc  .config/shell  .config/bash  .config/fish  .config/powershell  .config/nushell  .config/elvish
    .elvish  .config/xonsh  .xonshrc  .config/ion  .yashrc  .config/murex  .oh-my-zsh  .oh-my-bash  .bash_it
    .prezto  .zprezto  .antigen  .zinit  .config/starship.toml  .config/user-dirs.dirs  .selected_editor
    .local/share/bash-completion  .local/share/fish/vendor_conf.d  .direnvrc  .config/direnv  .cargo/env
    .nvm/nvm.sh  .asdfrc  .config/mise  .sdkman/bin  .dircolors  documents/powershell  documents/windowspowershell
    library/preferences/com.apple.terminal.plist  onedrive/documents/powershell
    onedrive/documents/windowspowershell
the next login:
    .xinitrc  .xprofile  .xsession  .xsessionrc  .xserverrc  .xsession.d  .dmrc  .pam_environment  .config/autostart
    .config/autostart-scripts  .config/systemd  .config/environment.d  .local/share/systemd  .config/upstart
    .config/plasma-workspace  .config/openbox  .config/i3  .i3  .config/sway  .config/hypr  .config/bspwm
    .config/awesome  .config/qtile  .xmonad  .config/xmonad  .config/fluxbox  .fluxbox  .config/labwc  .config/river
    .config/niri  .config/lxsession  .config/xfce4/xinitrc  .config/sxhkd  .xbindkeysrc  .config/polybar
    .config/waybar  library/launchagents  library/startupitems  library/preferences/com.apple.loginitems.plist
    library/preferences/loginwindow.plist  library/preferences/com.apple.loginwindow.plist
    library/application support/com.apple.backgroundtaskmanagementagent
    appdata/roaming/microsoft/windows/start menu/programs/startup
the desktop:
    .local/share/applications  .local/share/dbus-1  .config/mimeapps.list  .local/share/mime  .local/share/nautilus
    .local/share/nemo  .config/caja  .local/share/kservices5  .local/share/kio  .local/share/gnome-shell/extensions
    .local/share/plasma  .config/menus  library/services  library/scripts  library/application scripts
    library/quicklook  library/input methods  library/spotlight  library/workflows  library/colorpickers
    appdata/roaming/microsoft/internet explorer/quick launch
git:
    .gitconfig  .config/git  .hgrc  .config/hg  .config/jj  .config/pre-commit
an editor:
    .vimrc  .vim  .gvimrc  .exrc  .nanorc  .emacs  .emacs.el  .emacs.d  .config/emacs  .spacemacs  .doom.d
    .config/doom  .config/nvim  .config/vim  .local/share/nvim  .vimfiles  vimfiles  _vimrc  appdata/local/nvim
    .config/lvim  .config/helix  .config/kak  .config/micro  .config/zed  .config/code/user  .vscode  .vscode-server
    .vscode-oss  .cursor-server  .config/vscodium  .config/sublime-text  .config/jetbrains  .ideavimrc
    library/application support/code/user  library/application support/cursor/user  appdata/roaming/code/user
    appdata/roaming/cursor/user  appdata/roaming/microsoft/word/startup  appdata/roaming/microsoft/excel/xlstart
    appdata/roaming/microsoft/templates  appdata/roaming/microsoft/addins  .config/libreoffice
an interpreter:
    .pythonrc  .pythonrc.py  .pythonstartup  .pdbrc  .pdbrc.py  .ipython  .config/ipython  .jupyter  .config/jupyter
    .irbrc  .pryrc  .config/irb  .rprofile  .renviron  .gdbinit  .config/gdb  .lldbinit  .perldb  .perltidyrc
    .psqlrc  .sqliterc  .mongorc.js  .mongoshrc.js  .node_repl_init  .ghci  .ghc  .sbclrc  .octaverc  .julia/config
    .scalarc  .clojure/deps.edn  .lein/profiles.clj  .groovy/groovysh.profile  .phpsh  .psysh  .guile  .haskeline
    .gradle/init.d  .gradle/init.gradle  .mavenrc  .antrc  .ocamlinit  .utoprc  .luarc  .config/maxima
a terminal:
    .tmux.conf  .tmux  .config/tmux  .byobu  .screenrc  .config/kitty  .config/alacritty  .alacritty.toml
    .alacritty.yml  .wezterm.lua  .config/wezterm  .config/ghostty  .config/foot  .config/terminator  .config/zellij
    .mailcap  .lessfilter  .lesskey  .config/lesskey  .config/ranger  .config/lf  .config/nnn  .config/vifm
    .config/mc  .config/newsboat  .newsboat  .config/mpv  .mpv  .hyper.js  .config/htoprc  .ackrc  .ripgreprc
    .fdignore
ssh:
    .ssh  .rhosts  .shosts  .forward  .procmailrc  .qmail  .vacation.msg
a package manager:
    .npmrc  .yarnrc  .yarnrc.yml  .config/pip  .pip  pip/pip.ini  .pydistutils.cfg  .cargo/config.toml
    .cargo/config  .condarc  .config/conda  .gemrc  .config/uv  .config/pnpm  .bunfig.toml  .config/nix  .nixpkgs
    .config/nixpkgs  .config/home-manager  .config/guix  .config/pacman  .makepkg.conf  .rpmmacros
    .config/containers  .docker/cli-plugins  .docker/daemon.json  .kube/plugins  .terraform.d/plugins  .config/helm
    .local/share/helm/plugins  .curlrc  .config/curlrc  .wgetrc  .wget2rc  _curlrc  .config/yt-dlp
    .aria2/aria2.conf  .local/lib/python3
an agent:
    .claude  .claude.json  .codex  .gemini  .cursor  .continue  .config/handrail  .windsurf  .codeium
    .aider.conf.yml  .config/goose  .config/opencode  .config/crush  .roo  .cline  .amp  .config/amp  .copilot
    .config/zed/settings.json  .agents
"""

# From the root, on Linux and macOS.
SYSTEM_STARTUP = """
the system:
    etc  boot  efi  lib/systemd  usr/lib/systemd  usr/local/lib/systemd  run/systemd  lib/modules  usr/lib/modules
    usr/lib/udev  lib/udev  run/udev  usr/share/dbus-1  usr/share/polkit-1  usr/share/pam-configs
    usr/share/applications  usr/local/etc  opt/etc
the system's clock:
    var/spool/cron  var/spool/at  var/spool/anacron  var/at  var/cron  usr/lib/cron  etc/periodic
whoever types that name:
    bin  sbin  usr/bin  usr/sbin  usr/local/bin  usr/local/sbin  usr/games  opt/homebrew/bin  opt/local/bin
    snap/bin
every program:
    lib  lib32  lib64  libx32  usr/lib  usr/lib32  usr/lib64  usr/libexec  usr/local/lib  usr/local/libexec
    opt/homebrew/lib
the next login:
    library/launchagents  library/launchdaemons  library/startupitems  library/scripts  library/extensions  system
    library/security  library/preferences  library/quicklook  library/input methods  library/privilegedhelpertools
    library/internet plug-ins
"""

# From the root of a drive, on Windows.
WINDOWS_STARTUP = """
the next login:
    programdata/microsoft/windows/start menu/programs/startup  windows/system32/grouppolicy  windows/system.ini
    windows/win.ini
the system's clock:
    windows/tasks  windows/system32/tasks  windows/syswow64/tasks
the system:
    windows/system32/wbem  windows/system32/drivers/umdf  boot  bootmgr  efi  boot.ini  autoexec.bat  config.sys
the next shell:
    windows/system32/windowspowershell  program files/powershell  windows/syswow64/windowspowershell
"""

# Files of a project that a program runs or obeys without being asked.
PROJECT_AUTORUN = """
git:
    .git  .gitmodules  .husky  .githooks  .git-hooks  .pre-commit-config.yaml  .pre-commit-hooks.yaml  lefthook.yml
    .lefthook.yml  lefthook.yaml  .overcommit.yml  .lefthook  .lintstagedrc  .lintstagedrc.json
    .local-overcommit.yml  lefthook.toml  .lefthook.toml  .lfsconfig
    lefthook.json  .lefthook.json  lefthook-local.yml  .lefthook-local.yml  lefthook-local.yaml  .lefthook-local.yaml
    lefthook-local.toml  .lefthook-local.toml  lefthook-local.json  .lefthook-local.json  .huskyrc  .huskyrc.json
    .huskyrc.js  .huskyrc.yml  .huskyrc.yaml  .lintstagedrc.js  .lintstagedrc.cjs  .lintstagedrc.mjs  .lintstagedrc.yml
    .lintstagedrc.yaml  .lefthook.yaml
a version control system:
    .hg  .svn  .jj  .bzr  .sl/config  _darcs
direnv:
    .envrc  .direnv
an editor:
    .vscode  .theia  .idea  .fleet  .zed  .vim  .vimrc  _vimrc  .nvim.lua  .nvimrc  .exrc  .lvimrc  .local.vimrc  .devcontainer
    .dir-locals.el  .dir-locals-2.el  .kateproject  .sublime-project  .devcontainer.json  .projectile  .kakrc  .helix  .vs/tasks.vs.json
    .vs/launch.vs.json  _exrc  .lazy.lua  .watchmanconfig
an agent:
    .claude  .codex  .gemini  .cursor  .continue  .mcp.json  mcp.json  handrail.toml  .handrail  .windsurf  .roo
    .cline  .kiro  .agents  .amp  .cursorrules  .clinerules  .windsurfrules  .roorules  .aider.conf.yml  .opencode
    opencode.json  opencode.jsonc  .opencode.json  crush.json  .crush.json  agents.override.md  .github/hooks  agents.md
    claude.md  gemini.md  claude.local.md  .github/copilot-instructions.md
    .trae  .augment  .openhands  .codebuddy  .iflow  .rovodev  .copilot  .agent  agent.md  .rules  .kilocode  .kilocodemodes  .roomodes
    .github/instructions
    .junie  .qwen  qwen.md  warp.md  .goosehints  .aider.model.settings.yml  .aider.model.metadata.json
a shell:
    .autoenv  .autoenv.zsh  .tool-versions  mise.toml  .mise.toml  mise.local.toml  .mise.local.toml  .mise  .config/mise  .autoenv.sh  .asdfrc
    mise/config.toml  .shadowenv.d  .rvmrc  mise.dev.toml  .mise.dev.toml  mise.test.toml  .mise.test.toml
    mise.production.toml  .mise.production.toml
Python:
    sitecustomize.py  usercustomize.py  .pdbrc  .pdbrc.py  .pylintrc  pylintrc  jupyter_server_config.py
    jupyter_notebook_config.py  jupyter_lab_config.py
a package manager:
    .npmrc  .yarnrc  .yarnrc.yml  .yarn  .pnpmfile.cjs  .pnpmfile.mjs  .cargo/config.toml  .cargo/config  .bundle/config  .mvn
    rust-toolchain  rust-toolchain.toml  .bazelrc  .buckconfig  pip.conf  pip.ini  .pypirc  .condarc  nuget.config  .bunfig.toml  bunfig.toml
a program that connects:
    .netrc  _netrc  ansible.cfg  .ansible.cfg
a builder:
    .github/workflows  .github/actions  .gitlab-ci.yml  .gitlab/ci  .circleci  .travis.yml  .drone.yml
    .woodpecker.yml  .woodpecker  jenkinsfile  azure-pipelines.yml  bitbucket-pipelines.yml  .buildkite
    appveyor.yml  .appveyor.yml  .cirrus.yml  .forgejo  .gitea
an interpreter:
    .gdbinit  .lldbinit  .irbrc  .pryrc  .rprofile  .renviron  .ghci  .ocamlinit  .psqlrc  .sqliterc  .jupyter
    .iex.exs  .erlang  .octaverc  .latexmkrc  latexmkrc  .byebugrc  .rdbgrc  .perldb  .utoprc  .gnuplot  .psysh.php
    .luacheckrc
the next login:
    programs/startup  start menu/programs/startup
the file manager:
    autorun.inf  desktop.ini
"""
