"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Tool


@hookimpl
def handrail_register_tools() -> Iterable[Tool]:
    """File dialogs, programs started and closed; and, once they are loaded, menus, forms, settings and files in numbers."""
    from handrail_workflows.app_close import close_app
    from handrail_workflows.app_copy import copy_between_apps
    from handrail_workflows.app_install import install_app
    from handrail_workflows.app_launch import launch_app, open_file
    from handrail_workflows.env_variables import set_env_var
    from handrail_workflows.file_dialogs import open_dialog, save_dialog
    from handrail_workflows.find_replace import find_and_replace_in_files
    from handrail_workflows.forms import fill_form
    from handrail_workflows.menus import app_menu
    from handrail_workflows.settings import change_setting
    from handrail_workflows.text_extraction import extract_text

    base = [save_dialog, open_dialog, launch_app, open_file, close_app]
    advanced = [app_menu, fill_form, copy_between_apps, extract_text, install_app, set_env_var, change_setting]
    return [*base, *advanced, find_and_replace_in_files]
