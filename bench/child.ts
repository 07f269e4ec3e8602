/** Runs one scenario in this process and sends its samples to the parent. */
import { alternatives, scenarios } from './registry.ts'
import type { Plan } from './scenario.ts'

const [name, plan] = process.argv.slice(2)
const scenario = [...scenarios, ...alternatives].find((each) => each.name === name)
if (scenario === undefined || plan === undefined) throw new Error(`there is no scenario "${name}"`)

const samples = await scenario.sample(JSON.parse(plan) as Plan)
process.send?.(samples, () => process.exit(0))
