package e2e

import "github.com/berth-dev/berth/lab/e2e/setup"

// What these tests share with those of other packages, under short names.
const (
	configPath     = setup.ConfigPath
	resultPath     = setup.ResultPath
	sentinelPath   = setup.SentinelPath
	berthPath      = setup.BerthPath
	controllerPath = setup.ControllerPath
)

var (
	sharedLab           = setup.Lab
	addNode             = setup.AddNode
	createNode          = setup.CreateNode
	removeNode          = setup.RemoveNode
	within              = setup.Within
	nodeConfig          = setup.Config
	document            = setup.Document
	customData          = setup.CustomData
	checkStatus         = setup.CheckStatus
	ready               = setup.Ready
	runPod              = setup.RunPod
	waitRunning         = setup.WaitRunning
	awaitServiceAccount = setup.AwaitServiceAccount
	applyRBAC           = setup.ApplyRBAC
	approveAgents       = setup.ApproveAgents
	leaveAgent          = setup.LeaveAgent
	parallel            = setup.Parallel
	parallelLong        = setup.ParallelLong
	turn                = setup.Turn
	turnLong            = setup.TurnLong
)
