"""Windows' own calls: user32, gdi32 by mss, dwmapi, shcore, kernel32."""
