/** When devices are given to other programs. At most one of `process` and `schedule` is set; without both, at once. */
export interface NewPause {
  /** Ids of the devices; null for every GPU, or the processor where there is none. */
  devices: readonly string[] | null
  /** When it ends for good, epoch milliseconds; null for never. */
  until: number | null
  /** While a program of this name runs. */
  process: string | null
  schedule: PauseSchedule | null
}

/** Pauses again and again: at each time of a cron schedule, for this long. */
export interface PauseSchedule {
  cron: string
  timezone: string
  forMs: number
}

/** A pause as it is kept, and what it does now. */
export interface Pause extends NewPause {
  id: string
  /** Epoch milliseconds. */
  createdAt: number
  /** Whether it is in infer.yaml, and can only be removed there. */
  isConfigured: boolean
  /** Ids of the devices that it keeps from being used now. */
  pausedDevices: string[]
  /** When it ends, or ends this time, epoch milliseconds; null where nobody knows, and while it pauses nothing. */
  endsAt: number | null
  /** When its schedule pauses devices next, epoch milliseconds; null without a schedule. */
  nextAt: number | null
}

/** The devices that are given to other programs, and when they are used again. Survives a restart. */
export interface Pauses {
  list(): Pause[]
  /**
   * Pauses devices. No request begins there; engines end after their requests, or with `atOnce` at once; requests wait,
   * unless another device can serve them. Resolves when it is stored. Throws Failure `invalid_value` for an unknown
   * device and `conflict` for too many pauses.
   */
  add(pause: NewPause, options: { atOnce: boolean }): Promise<Pause>
  /**
   * Ends what pauses these devices now; null for all. A schedule, and the next start of a program, pause them again.
   * Resolves with the ids of the devices that are used again. Throws Failure `invalid_value` for an unknown device.
   */
  resume(devices: readonly string[] | null): Promise<string[]>
  /** Removes a pause. Resolves with it, or undefined: there is none. Throws Failure `conflict` if it is configured. */
  remove(id: string): Promise<Pause | undefined>
  /** Resolves when no engine is left on the devices that are paused now, and their memory is free. */
  released(): Promise<void>
}
