/** The scenarios, in the order of the table, and the alternatives, which teach but are not part of it. */
import { deliveryObject } from './alternatives/delivery-object.ts'
import { drainScheduling } from './alternatives/drain-scheduling.ts'
import { logShapes } from './alternatives/log-shapes.ts'
import { settling } from './alternatives/settling.ts'
import { wireCodecs } from './alternatives/wire-codecs.ts'
import type { Scenario } from './scenario.ts'
import { asyncResolved, asyncWaiting } from './scenarios/async-handlers.ts'
import { awaitPublish } from './scenarios/await-publish.ts'
import { oneToFour, oneToOne, oneToOneObjects } from './scenarios/broadcast.ts'
import { fileBurst } from './scenarios/file-burst.ts'
import { fileBehind, fileTail } from './scenarios/file-consumers.ts'
import { fileFirstDelivery } from './scenarios/file-first-delivery.ts'
import { fileLatency } from './scenarios/file-latency.ts'
import { fileMemory } from './scenarios/file-memory.ts'
import { filePublishers } from './scenarios/file-publishers.ts'
import { fileRecovery } from './scenarios/file-recovery.ts'
import { fourToOne } from './scenarios/four-to-one.ts'
import { groupOfFour } from './scenarios/group-of-four.ts'
import { latency } from './scenarios/latency.ts'
import { memory } from './scenarios/memory.ts'
import { pingPong } from './scenarios/ping-pong.ts'
import { pipeline } from './scenarios/pipeline.ts'
import { tenThousand } from './scenarios/ten-thousand.ts'

export const scenarios: readonly Scenario[] = [
  oneToOne,
  oneToOneObjects,
  oneToFour,
  fourToOne,
  groupOfFour,
  pingPong,
  pipeline,
  asyncResolved,
  asyncWaiting,
  awaitPublish,
  tenThousand,
  memory,
  latency,
  fileBurst,
  filePublishers,
  fileRecovery,
  fileFirstDelivery,
  fileBehind,
  fileTail,
  fileMemory,
  fileLatency,
]

export const alternatives: readonly Scenario[] = [
  logShapes,
  deliveryObject,
  drainScheduling,
  settling,
  wireCodecs,
]
