// Package route decides which provider and model answer a run, call by call: the catalogue of providers and their models, and
// the plan of one run with its retries, fallbacks, waits and breakers.
//
// The decision is pure (course.go): time, back-off and what is known of a provider at the moment are its inputs. Around it
// stands a thin shell (backend.go, plan.go) that owns the breakers and the rate limits of the process.
package route
