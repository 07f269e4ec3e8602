/** `odradek/testing`: what users and we ourselves test with. */
export { type ConformanceCase, type LogConformanceOptions, logConformance } from './log-conformance.ts'
export { ManualClock, type ManualClockOptions } from './manual-clock.ts'
