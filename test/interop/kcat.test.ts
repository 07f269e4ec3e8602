import { attemptAll } from './attempt.ts'

attemptAll('kcat')
