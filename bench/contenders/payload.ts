/** What is moved, and how a handler gets the number out that it adds up. */
export interface Payload<T> {
  make(i: number): T
  idOf(value: T): number
}

export const numbers: Payload<number> = {
  make: (i) => i,
  idOf: (value) => value,
}

export interface Order {
  readonly id: number
  readonly amount: number
  readonly customer: string
}

/** A fresh object for each record, as a service would publish it. */
export const orders: Payload<Order> = {
  make: (i) => ({ id: i, amount: i & 1_023, customer: 'Gregor' }),
  idOf: (value) => value.id,
}
