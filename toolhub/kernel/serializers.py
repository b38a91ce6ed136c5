"""How is a request body checked, so that a misspelled field is an answer and not a surprise?"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown fields by name."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(set(data) - set(self.fields))
            if unknown:
                raise serializers.ValidationError(
                    {
                        name[:64]: [f"There is no field with this name. The fields are: {', '.join(self.fields)}."]
                        for name in unknown[:10]
                    }
                )
        return super().to_internal_value(data)
