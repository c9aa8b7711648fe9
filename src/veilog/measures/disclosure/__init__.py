"""The risk of a log: what somebody who knows a little of a person learns of them."""
