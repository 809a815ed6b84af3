import { invalid } from '../failure.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import { pick } from '../members.ts'
import {
  type ActiveWork,
  type Actor,
  type AuditEntry,
  type AuditFilter,
  type NewOrganization,
  type Organization,
  type OrganizationChange,
  plans,
  type Store,
  theServer,
  type User,
  type UserChange,
} from '../store/store.ts'

/** How often suspensions by another process are looked for, milliseconds. */
const suspendedMs = 1_000
/** How often deleted organizations with remaining objects are looked for, milliseconds. */
const eraseMs = 60_000
/** How many objects of each kind one transaction cancels or erases: about 20 ms of the writer. */
const batchSize = 100

export type OrganizationOptions = Partial<Omit<NewOrganization, 'createdAt'>> & Pick<NewOrganization, 'name'>

/** What deleting an organization did. */
export interface Deletion {
  organization: Organization
  work: ActiveWork
  tokensRevoked: number
  usersRemoved: number
  filesRemoved: number
  workflowsRemoved: number
}

/**
 * Organizations and their users: creation, change, suspension and deletion. Knows which organizations are suspended, so
 * that their jobs are not started. Every change names its actor for the audit log.
 */
export function openOrganizations(dependencies: {
  store: Pick<Store, 'organizations' | 'users' | 'audit'>
  log: Log
  /** The plans that an organization can have. */
  planNames?: () => readonly string[]
  /** Called after changes that authentication must see at once; awaited before they are answered. */
  changed?: () => Promise<void> | void
  /** Deletes what is kept of an organization outside of the store and its files. */
  forget?: (id: string) => Promise<void>
  now?: () => number
}) {
  const { store, log, planNames = () => plans, changed = () => {}, forget, now = Date.now } = dependencies
  let suspended: ReadonlySet<string> = new Set()
  let timers: NodeJS.Timeout[] = []
  let closed = false
  let erasing: Promise<void> = Promise.resolve()

  async function readSuspended(): Promise<void> {
    suspended = new Set(await store.organizations.suspended())
  }

  function requirePlan(plan: string | undefined): void {
    const names = planNames()
    if (plan !== undefined && !names.includes(plan))
      throw invalid(
        'plan',
        `There is no plan '${plan.slice(0, 60)}'. The plans of this server are: ${names.join(', ')}.`,
      )
  }

  /** Cancels all jobs and executions, in batches. Returns how many. */
  async function cancelWork(id: string): Promise<ActiveWork> {
    const cancelled: ActiveWork = { jobs: 0, executions: 0 }
    for (;;) {
      const { jobs, executions } = await store.organizations.cancelWork(id, now(), batchSize)
      if (jobs + executions === 0) return cancelled
      cancelled.jobs += jobs
      cancelled.executions += executions
    }
  }

  /** Erases the remaining objects of a deleted organization, in batches. Returns their number. */
  async function erase(id: string): Promise<{ files: number; workflows: number }> {
    const erased = { files: 0, workflows: 0 }
    await forget?.(id)
    for (;;) {
      const { files, workflows, more } = await store.organizations.erase(id, now(), batchSize)
      erased.files += files
      erased.workflows += workflows
      if (!more || closed) return erased
    }
  }

  /** Deleted organizations of which this process keeps nothing any more. */
  const forgotten = new Set<string>()
  /** Another process cannot delete what this one keeps. */
  async function forgetDeleted(): Promise<void> {
    if (!forget) return
    for (const { id, status } of await store.organizations.list()) {
      if (status !== 'deleted' || forgotten.has(id)) continue
      await forget(id)
      forgotten.add(id)
    }
  }

  async function eraseAll(): Promise<void> {
    await forgetDeleted().catch(warn('Not everything of the deleted organizations could be erased'))
    for (const id of await store.organizations.unerased())
      await erase(id).catch(warn(`Not everything of the deleted organization ${id} could be erased`))
  }

  /** Lets authentication see a change once it is stored. */
  async function announced<Done>(change: Promise<Done>): Promise<Done> {
    const done = await change
    await changed()
    return done
  }

  const warn = (message: string) => (thrown: unknown) => {
    if (!closed) log.warn(message, {}, thrown)
  }

  return {
    /** `conflict` when the name is taken; `invalid_value` for an unknown plan. */
    create(options: OrganizationOptions, by: Actor = theServer): Promise<Organization> {
      requirePlan(options.plan)
      return store.organizations.create({ id: newId('org'), plan: 'enterprise', ...options, createdAt: now() }, by)
    },
    ...pick(store.organizations, 'list', 'find', 'activeWork'),

    /**
     * Undefined: there is none. `invalid_value` for an unknown plan; `conflict` when the name is taken, when it was
     * deleted, and to rename the one that owns the machine.
     */
    async update(id: string, change: OrganizationChange, by: Actor): Promise<Organization | undefined> {
      requirePlan(change.plan)
      return announced(store.organizations.update(id, change, by, now()))
    },

    /**
     * Refuses its tokens from now on, and starts none of its jobs. What runs is finished, and what waits stays, unless
     * `cancel` is set: then `cancelled` says how much was cancelled. Undefined: there is none. `conflict` when it was
     * deleted, or owns the machine.
     */
    async suspend(id: string, { cancel }: { cancel: boolean }, by: Actor) {
      const organization = await announced(store.organizations.setStatus(id, 'suspended', by, now()))
      if (!organization) return undefined
      await readSuspended()
      return { organization, cancelled: cancel ? await cancelWork(id) : { jobs: 0, executions: 0 } }
    },

    /** Accepts its tokens and starts its jobs again. Undefined: there is none. `conflict` when it was deleted. */
    async resume(id: string, by: Actor): Promise<Organization | undefined> {
      const organization = await announced(store.organizations.setStatus(id, 'active', by, now()))
      await readSuspended()
      return organization
    },

    /**
     * Deletes it for good: revokes its tokens, removes its users, cancels its work, erases its files, workflows, jobs
     * and executions. Its ledger, usage and audit log are kept, and its name is free. Undefined: there is none.
     * `conflict` while work is unfinished unless forced, when it was deleted before, and for the one that owns the
     * machine.
     */
    async remove(id: string, { force }: { force: boolean }, by: Actor): Promise<Deletion | undefined> {
      const removed = await announced(store.organizations.remove(id, force, by, now()))
      if (!removed) return undefined
      const work = await cancelWork(id)
      const { files: filesRemoved, workflows: workflowsRemoved } = await erase(id)
      return { organization: (await store.organizations.find(id))!, work, ...removed, filesRemoved, workflowsRemoved }
    },

    users: {
      /** `conflict` when the e-mail address is taken; `not_found` without the organization. */
      create: (user: Pick<User, 'organizationId' | 'name' | 'email' | 'role'>, by: Actor): Promise<User> =>
        store.users.create({ ...user, id: newId('user'), createdAt: now() }, by),
      ...pick(store.users, 'find', 'summary', 'list'),
      /**
       * Takes scopes beyond a new role from his tokens. Undefined: no such user. `conflict` for the last owner, a taken
       * e-mail address, and, unless forced, the last tokens with admin:write.
       */
      update: (organizationId: string, id: string, change: UserChange, by: Actor, force = false) =>
        announced(store.users.update(organizationId, id, change, { by, at: now(), force })),
      /** Revokes his tokens. Undefined and `conflict` as for `update`. */
      remove: (organizationId: string, id: string, by: Actor, force = false) =>
        announced(store.users.remove(organizationId, id, { by, at: now(), force })),
    },

    audit: (organizationId: string, filter: AuditFilter) => store.audit.list(organizationId, filter),
    /** Adds an act to the audit log that changes nothing in the store. */
    record: (entry: AuditEntry): Promise<void> => store.audit.record(entry),

    /** Whether jobs of the organization must wait. Cheap; changes by another process count within a second. */
    isSuspended: (id: string): boolean => suspended.has(id),
    /** How many organizations are suspended. */
    get suspended(): ReadonlySet<string> {
      return suspended
    },

    /** Begins to look for changes by other processes, and to erase what a crash has left. Resolves when both are known. */
    async watch(): Promise<void> {
      await readSuspended()
      const eraseLater = () => {
        erasing = erasing.then(eraseAll).catch(warn('Not everything of the deleted organizations could be erased'))
      }
      eraseLater()
      timers = [
        setInterval(
          () => void readSuspended().catch(warn('The suspended organizations could not be read')),
          suspendedMs,
        ).unref(),
        setInterval(eraseLater, eraseMs).unref(),
      ]
    },
    async close(): Promise<void> {
      closed = true
      for (const timer of timers) clearInterval(timer)
      await erasing
    },
  }
}
export type Organizations = ReturnType<typeof openOrganizations>
