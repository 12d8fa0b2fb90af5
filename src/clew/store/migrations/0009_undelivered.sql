-- Those that did not arrive are few among those that did.
CREATE INDEX delivery_undelivered ON delivery (n) WHERE state <> 'delivered';
