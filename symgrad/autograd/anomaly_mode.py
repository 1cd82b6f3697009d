"""Where torch has the detection of anomalies."""

from symgrad.autograd.anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
