/** The control: a reader to which there seems to be room for anything, as if counts were not compared with it. */
import { WireReader } from '../../../src/wire/reader.ts'

export class Credulous extends WireReader {
  override get left(): number {
    return Number.POSITIVE_INFINITY
  }
}
