// Package telemetry watches model calls: a Provider around a provider that counts and times what happens and makes a span of each
// call, under the names of OpenTelemetry's conventions for generative AI.
//
// What it records holds no text of a prompt or an answer and no message of a provider, which may quote one: an error is its kind.
// Only where Config.Content is set do spans hold text, and metrics never do. No session is a label of a metric, and the names of
// models, which clients and providers choose, become labels in a bounded number: the series of a process are bounded.
//
// The package knows the interfaces of OpenTelemetry and no SDK: who makes the providers of meters and tracers decides where
// everything goes.
package telemetry
