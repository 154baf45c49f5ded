"""Settings of the commands that belong to no component."""

from pathlib import Path
from typing import Annotated

from soundmark.settings.fields import Allowed, ApiKey, HttpUrl
from soundmark.settings.process import LOCAL_CORE, ProcessSettings
from soundmark.settings.registry import AccountingSettings, CardSettings, LocalPaymentSettings, SupportSettings


class ContractSettings(ProcessSettings):
    """Settings of the commands that write the published contract."""

    base_url: HttpUrl = LOCAL_CORE


class ClientSettings(ContractSettings):
    """Settings of the commands that call Core's API."""

    api_key: ApiKey | None = None


class SandboxSettings(ContractSettings, CardSettings, LocalPaymentSettings, AccountingSettings, SupportSettings):
    """Settings of `soundmark sandbox`: those with which Core would use it."""


class UpSettings(ProcessSettings):
    """Settings of `soundmark up` itself; the processes that it starts read their own."""

    postgres_bin: Annotated[Path, Allowed("a folder")] | None = None
