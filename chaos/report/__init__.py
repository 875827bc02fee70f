"""The page of a run: verdict, anomalies with their operations, faults over what the cluster did."""
