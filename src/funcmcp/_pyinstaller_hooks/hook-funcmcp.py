"""What a frozen server needs besides the modules that PyInstaller finds in import statements."""

from PyInstaller.utils.hooks import collect_data_files

# `mcp.run("http")` imports it by name, so that `import funcmcp` does not load uvicorn.
hiddenimports = ["funcmcp._processes.server"]
datas = collect_data_files("funcmcp._page", includes=["files/*"])
