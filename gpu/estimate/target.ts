/** The devices on which a model is to be placed. */
export interface PlacementTarget {
  kind: 'gpu' | 'cpu'
  /** How many devices it is divided among at least. `capacity`: bytes that may be booked on each of them. */
  devices: number
  capacity: number
  /**
   * Bytes that may be booked on each card that it may have, largest first. More of them than `devices` are used where the
   * engine can divide the model, and fewer have no room for it. Absent: `devices` equal ones.
   */
  cards?: readonly number[]
  /** The smallest of the first n of them, for every n. Absent: nobody else uses them, and `capacity` is what may be booked. */
  sizes?: readonly DeviceSize[]
  slots: number
  /** The backend by which the built-in engine uses the cards. */
  backend?: 'cuda' | 'vulkan' | undefined
  /** Bytes that could be booked on each of them, if `capacity` is a part that the configuration names. */
  whole?: number
}

/** Bytes of a device: all of its memory, and what other programs leave of it. */
export interface DeviceSize {
  total: number
  free: number
}
