/** The Kafka side of a broker that comes back: each process opens what the one before has left on the disk. */
import { ManualClock } from '../../src/testing/manual-clock.ts'
import type { Disk, DiskEngine } from './disks.ts'
import { type KafkaOptions, KafkaWorld } from './kafka.ts'

export interface Booted {
  readonly world: KafkaWorld
  /** The process ends, without a close. */
  crash(): void
}

export async function bootKafka(disk: Disk, options: KafkaOptions = {}): Promise<Booted> {
  const engine: DiskEngine = await disk.open(new ManualClock())
  const world = new KafkaWorld({ ...options, engine })
  await world.broker.restore()
  return { world, crash: () => engine.crash() }
}
