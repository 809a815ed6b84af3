/** What a parked engine does with its weights: 1 keeps them in the main memory, 2 reads them again when it is woken. */
export type ParkingLevel = 1 | 2

/** How an engine is parked: the requests that park it and wake it, in their order. */
export interface ParkingWay {
  park: readonly ParkingCall[]
  wake: readonly ParkingCall[]
  /** Bytes of the main memory for each byte of its weights; absent if it keeps none. */
  hostFactor?: number
}

/** A request that parks or wakes an engine. */
export interface ParkingCall {
  path: string
  body?: object
}
