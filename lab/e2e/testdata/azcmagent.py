#!/usr/bin/python3
# The program of the Azure Connected Machine agent as far as a join and a leave need it:
# show -j, connect --config FILE, disconnect --force-local-only. It registers where
# /etc/azcmagent-arm says, with exit codes 42, 44 and 62 as the real one.
import json, os, ssl, sys, urllib.error, urllib.request

STATE = "/var/opt/azcmagent/agentconfig.json"
context = ssl._create_unverified_context()


def arm(method, path, token, body=None):
    url = open("/etc/azcmagent-arm").read().strip() + path + "?api-version=2022-03-10"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=json.dumps(body).encode() if body else None, method=method,
                                                           headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"}), context=context) as r:
            return r.status
    except urllib.error.HTTPError as e:
        return e.code
    except OSError as e:
        fail(62, "Error connecting to Azure: %s" % e)


def fail(code, text):
    print('level=fatal msg="AZCM%04d: %s"' % (code, text))
    sys.exit(code)


def connect(args):
    if "--access-token" in args:
        fail(1, "a token is for everybody to see")
    inputs = json.load(open(args[args.index("--config") + 1]))
    path = "/subscriptions/%(subscription-id)s/resourceGroups/%(resource-group)s/providers/Microsoft.HybridCompute/machines/%(resource-name)s" % inputs
    if arm("GET", path, inputs["access-token"]) == 200:
        fail(44, "a resource of this name exists")
    tags = dict(t.split("=", 1) for t in inputs.get("tags", "").split(",") if t)
    body = {"location": inputs["location"], "identity": {"type": "SystemAssigned"}, "tags": tags}
    if arm("PUT", path, inputs["access-token"], body) != 201:
        fail(42, "the resource could not be made")
    os.makedirs(os.path.dirname(STATE), exist_ok=True)
    with open(STATE, "w") as f:
        json.dump({"status": "Connected", "resourceName": inputs["resource-name"], "resourceGroup": inputs["resource-group"],
                   "subscriptionId": inputs["subscription-id"], "tenantId": inputs["tenant-id"], "location": inputs["location"]}, f)


command, rest = sys.argv[1], sys.argv[2:]
if command == "show":
    print(open(STATE).read() if os.path.exists(STATE) else '{"status": "Disconnected", "resourceName": ""}')
elif command == "connect":
    connect(rest)
elif command == "disconnect":
    if rest != ["--force-local-only"]:
        fail(1, "nobody is logged in")
    os.remove(STATE)
