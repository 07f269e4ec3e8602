import { attemptAll } from './attempt.ts'

attemptAll('rdkafka')
