import type { Log } from '../../core/log.ts'
import { callsIn, type LedgerRows } from '../../core/store/ledger-rows.ts'
import { openAdminStore } from '../../core/store/sqlite/admin.ts'
import type { CommandName } from '../../core/store/sqlite/commands.ts'
import { received } from '../../core/store/sqlite/sent-failure.ts'
import type { SendCommand, Store } from '../../core/store/store.ts'
import { keepRecords } from './kept-records.ts'
import type { Successor } from './successor.ts'

interface Pending {
  name: string
  given: readonly unknown[]
  resolve: (value: unknown) => void
  reject: (failure: Error) => void
}

/**
 * The commands of this server's store after its data directory was handed over. The new server runs them. If it ends,
 * they run beside whatever server there is then, as those of the command line do; records of a database that cannot be opened
 * wait for the next server. So no record is lost.
 */
export function openRemoteCommands({ dataDir, log }: { dataDir: string; log: Log }) {
  const pending = new Map<number, Pending>()
  let last = 0
  let successor: Successor | undefined
  let own: Promise<Store> | undefined

  function pass(id: number, { name, given, resolve, reject }: Pending): void {
    if (!own) return successor?.send({ kind: 'command', id, name, given })
    own
      .then(
        store => store.perform(name, given),
        (cause: unknown) => keep(name, given, cause),
      )
      .then(resolve, reject)
      .finally(() => pending.delete(id))
  }

  /** The database cannot be opened, as after an upgrade: records wait in a file for the next server. Throws for the rest. */
  function keep(name: string, given: readonly unknown[], cause: unknown): void {
    if (name !== ('recordCalls' satisfies CommandName)) throw cause
    const [rows, texts] = given as [LedgerRows, readonly string[]]
    keepRecords(
      dataDir,
      [JSON.stringify(rows), ...texts].flatMap(text => callsIn(text)),
    )
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
    /** Call it when the new server has ended after it served, or when none serves. Harmless afterwards. */
    useOwn(): void {
      if (own) return
      log.warn('No new server writes the records of the last requests, so this one does', { commands: pending.size })
      own = openAdminStore(dataDir, log)
      own.catch((cause: unknown) =>
        log.error('The database cannot be opened: the next server writes the records of the last requests', {}, cause),
      )
      passAll()
    },
    close: async (): Promise<void> => (await own?.catch(() => undefined))?.close(),
  }
}
