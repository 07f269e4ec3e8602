/** Each record to exactly one of four: a shared group against a queue with four workers. */
import { createBroker } from 'odradek/memory'
import { RETAINED } from '../contenders/emitters.ts'
import { numbers } from '../contenders/payload.ts'
import { FASTQ_BURST, fastqCallbacks, fastqPromises } from '../contenders/queues.ts'
import { type Contender, race, type Session } from '../race.ts'
import { atLeast, type Scenario, speed } from '../scenario.ts'
import { anyOrder, Tally } from '../tally.ts'

/** `concurrency` 4 of a queue is one handler four times at once; a group has four members. */
function odradekGroup(name: string, settles: 'synchronous' | 'async'): Contender {
  return {
    name,
    async open(): Promise<Session> {
      const broker = createBroker()
      const topic = await broker.createTopic<number>('orders')
      const tally = new Tally()
      for (let i = 0; i < 4; i++) {
        const options = { group: 'workers', id: `worker-${i}` }
        if (settles === 'synchronous') await topic.subscribe((d) => tally.addAnyOrder(d.value), options)
        else await topic.subscribe(async (d) => tally.addAnyOrder(d.value), options)
      }
      return {
        tallies: [tally],
        async run(count) {
          for (let i = 0; i < count; i++) {
            if (topic.tryPublish(i) === undefined) await topic.publish(i)
          }
        },
        close: async () => {
          await broker.close()
        },
      }
    },
  }
}

export const groupOfFour: Scenario = {
  name: 'group-of-four',
  title: 'One producer, a shared group of four members (each record to one of them), numbers',
  moved: 'records',
  rows: [
    speed('odradek', 'fastq callbacks', atLeast(0.5)),
    speed('odradek', 'fastq promises, burst of 65,536', atLeast(5)),
    speed('odradek', 'fastq promises, bursts of 256'),
    speed('odradek, async handlers', 'fastq promises, burst of 65,536'),
    speed('odradek, async handlers', 'fastq promises, bursts of 256'),
  ],
  sample: race({
    expectation: anyOrder((i) => i),
    contenders: [
      odradekGroup('odradek', 'synchronous'),
      odradekGroup('odradek, async handlers', 'async'),
      fastqCallbacks(4, numbers),
      fastqPromises('fastq promises, burst of 65,536', 4, RETAINED, numbers),
      fastqPromises('fastq promises, bursts of 256', 4, FASTQ_BURST, numbers),
    ],
  }),
}
