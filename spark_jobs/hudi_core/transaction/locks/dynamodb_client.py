"""Connects to DynamoDB, with the credentials of the environment or of the table's storage options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import boto3

from hudi_core.config.lock_config import DynamodbConfig

_DEFAULT_REGION = "us-east-1"
_NAMES = {"key": "aws_access_key_id", "secret": "aws_secret_access_key", "token": "aws_session_token"}


def dynamodb_client(config: DynamodbConfig, storage_options: Mapping[str, str]) -> Any:
    """A boto3 client. The region is the option's, else AWS_REGION's, else us-east-1 (DynamoDbBasedLockConfig.DYNAMODB_LOCK_REGION)."""
    region = config.region or os.environ.get("AWS_REGION") or _DEFAULT_REGION
    credentials = {_NAMES[name]: value for name, value in storage_options.items() if name in _NAMES}
    return boto3.client("dynamodb", region_name=region, endpoint_url=config.endpoint_url, **credentials)
