import { attemptAll } from './attempt.ts'

attemptAll('platformatic')
