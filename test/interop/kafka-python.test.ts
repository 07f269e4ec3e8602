import { attemptAll } from './attempt.ts'

attemptAll('kafka-python')
