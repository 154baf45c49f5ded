"""Exports of Audience reports: made from the API's answers alone, and refused unless these agree."""
