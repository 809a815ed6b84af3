import type { Log } from '../../core/log.ts'
import { openAdminStore } from '../../core/store/sqlite/admin.ts'
import { received } from '../../core/store/sqlite/sent-failure.ts'
import type { SendCommand, Store } from '../../core/store/store.ts'
import type { Successor } from './successor.ts'

interface Pending {
  name: string
  given: readonly unknown[]
  resolve: (value: unknown) => void
  reject: (failure: Error) => void
}

/**
 * The commands of this server's store after its data directory was handed over. The new server runs them. If it ends,
 * they run beside whatever server there is then, as those of the command line do, so that no record is lost.
 */
export function openRemoteCommands({ dataDir, log }: { dataDir: string; log: Log }) {
  const pending = new Map<number, Pending>()
  let last = 0
  let successor: Successor | undefined
  let own: Promise<Store> | undefined

  function pass(id: number, { name, given, resolve, reject }: Pending): void {
    if (!own) return successor?.send({ kind: 'command', id, name, given })
    own
      .then(store => store.perform(name, given))
      .then(resolve, reject)
      .finally(() => pending.delete(id))
  }
  const passAll = () => {
    for (const [id, command] of pending) pass(id, command)
  }

  return {
    send: ((name, given) =>
      new Promise((resolve, reject) => {
        const command = { name, given, resolve, reject }
        pending.set(++last, command)
        pass(last, command)
      })) satisfies SendCommand,
    /** Sends them to this server from now on, those without an answer too: a command may be sent twice. */
    use(next: Successor): void {
      successor = next
      next.onMessage(message => {
        if (message.kind !== 'answer') return
        const command = pending.get(message.id)
        pending.delete(message.id)
        if (message.failure) command?.reject(received(message.failure))
        else command?.resolve(message.value)
      })
      passAll()
    },
    /** Call it when the new server has ended after it served. */
    useOwn(): void {
      log.warn('The new server ended; this one writes the records of its last requests itself', {
        records: pending.size,
      })
      own = openAdminStore(dataDir, log)
      own.catch((cause: unknown) => log.error('The records of the last requests cannot be written', {}, cause))
      passAll()
    },
    close: async (): Promise<void> => (await own?.catch(() => undefined))?.close(),
  }
}
