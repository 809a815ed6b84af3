import { CommandFailure, exitCodes, type refused } from '../terminal/exit-codes.ts'

/** Only a restart can replace the running server. No new one was started. */
export class RestartNeeded extends CommandFailure {
  constructor(message: string, more: Parameters<typeof refused>[2] = {}) {
    super(exitCodes.failed, 'conflict', message, more)
  }
}
