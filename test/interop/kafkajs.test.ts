import { attemptAll } from './attempt.ts'

attemptAll('kafkajs')
