UPDATE code_entitlements
   SET floor_monthly_quota = 700,
       floor_ends_at       = %(tomorrow)s
 WHERE organization_id = 'org_b3RoZXItcmFkaW8tZXhhbQ';
