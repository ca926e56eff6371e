"""The other way round: tools of other servers, offered as Handrail's own and judged as they are."""
