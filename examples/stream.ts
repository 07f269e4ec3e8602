/**
 * Pull instead of push: records by `for await`. Asking for the next record acks the one before; leaving the loop
 * gives the current one back, un-acked, and unsubscribes. With an id, the place is kept.
 */
import { openBroker } from 'odradek'

await using broker = await openBroker()
const letters = await broker.createTopic<string>('letters')
for (const letter of ['a', 'b', 'c', 'd', 'e']) await letters.publish(letter)

console.log('Up to "c", which is left without an ack:')
for await (const d of letters.stream({ id: 'reader', from: 'earliest' })) {
  console.log(`  ${d.value}`)
  if (d.value === 'c') break
}

console.log('\nThe same id goes on there. "c" comes again; its attempt did not count:')
for await (const d of letters.stream({ id: 'reader' })) {
  console.log(`  ${d.value}, attempt ${d.attempt}${d.redelivered ? ', redelivered' : ''}`)
  if (d.value === 'e') {
    d.ack()
    break
  }
}

console.log('\nA signal ends a loop that waits:')
const controller = new AbortController()
setTimeout(() => controller.abort(), 100)
let count = 0
for await (const _ of letters.stream({ from: 'earliest', signal: controller.signal })) count++
console.log(`  ${count} letters, then nothing came until the signal`)
