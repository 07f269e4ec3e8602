/** A way to a server whose connections break when they are told to. */
import { connect, createServer, type Server, type Socket } from 'node:net'

/** Of breaks, while nothing moves. */
const STALLED_SHARE = 0.2

/** Passes bytes on, until it breaks one of its connections. */
export class Passage {
  target = 0
  broken = 0
  readonly #server: Server
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  #timer: NodeJS.Timeout | undefined

  private constructor(server: Server) {
    this.#server = server
    server.on('connection', (client) => this.#pass(client))
  }

  static open(): Promise<Passage> {
    const server = createServer()
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve(new Passage(server)))
    })
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  get bootstrap(): string {
    return `127.0.0.1:${this.port}`
  }

  /**
   * One after the other, each `fromMs` to `toMs` after the last. Where nothing has moved since, on a machine that is busy with
   * other things, too, most are left out, so that clients come to something between two of them.
   */
  startBreaking(random: () => number, [fromMs, toMs]: readonly [number, number], moved: () => number): void {
    let last = -1
    const next = (): void => {
      this.#timer = setTimeout(
        () => {
          const pairs = [...this.#pairs]
          const pair = pairs[Math.floor(random() * pairs.length)]
          const now = moved()
          const isDue = now !== last || random() < STALLED_SHARE
          last = now
          if (pair !== undefined && isDue) {
            this.broken++
            for (const socket of pair) socket.resetAndDestroy()
          }
          next()
        },
        fromMs + random() * (toMs - fromMs),
      )
    }
    next()
  }

  stopBreaking(): void {
    clearTimeout(this.#timer)
  }

  close(): Promise<void> {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy()
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
    })
  }

  #pass(client: Socket): void {
    const server = connect(this.target, '127.0.0.1')
    const pair = [client, server] as const
    this.#pairs.add(pair)
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('error', () => {})
      from.on('close', () => {
        this.#pairs.delete(pair)
        to.destroy()
      })
      from.pipe(to)
    }
  }
}
