"""What people look at: progress, dashboard, report."""
