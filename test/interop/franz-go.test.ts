import { attemptAll } from './attempt.ts'

attemptAll('franz-go')
