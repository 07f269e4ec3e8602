import { attemptAll } from './attempt.ts'

attemptAll('java')
