import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { advance, type ExecutionInput, type ExecutionWrite } from '../../../core/dag/advance.ts'
import {
  applyWrites,
  type ExecutionPlan,
  type ExecutionState,
  isOver,
  newState,
  restoredState,
} from '../../../core/dag/execution-state.ts'
import { type Graph, planOf, type Work } from './_interpreter.ts'

type Untimed<Input = ExecutionInput> = Input extends ExecutionInput ? Omit<Input, 'at'> : never

/** A job of a node, or of an item of it. */
interface Job {
  node: number
  item: number | null
  /** `aside`: it holds no slot, and something else ends it. `gathered`: so are the results of its items. */
  state: 'queued' | 'running' | 'aside' | 'gathered'
  /** The execution that it awaits. */
  child?: Execution
}

interface Execution {
  graph: Graph
  plan: ExecutionPlan
  state: ExecutionState
  jobs: Map<string, Job>
  /** When each node was last changed. */
  changedAt: number[]
  /** How many items of each node have got a job. */
  created: number[]
  gathered: Set<number>
  ends: string[]
  parent: { execution: Execution; job: Job } | null
}

const keyOf = (node: number, item: number | null) => (item === null ? String(node) : `${node}/${item}`)

/**
 * Executions over a number of slots, with what the store and the queue do around the state machine. `pick` returns a number
 * below its argument. Every step checks that nothing runs without a slot, that nothing which waits has one, and that a
 * restart at this moment would change nothing.
 */
export function openMachine(root: Graph, slots: number, pick: (below: number) => number) {
  const all: Execution[] = []
  let now = 0

  function begin(graph: Graph, parent: Execution['parent']): Execution {
    const plan = planOf(graph)
    const none = graph.nodes.map(() => 0)
    const execution: Execution = {
      graph,
      plan,
      state: newState(plan),
      jobs: new Map(),
      changedAt: [...none],
      created: [...none],
      gathered: new Set(),
      ends: [],
      parent,
    }
    all.push(execution)
    step(execution, { type: 'created' })
    return execution
  }

  const running = () => all.flatMap(({ jobs }) => [...jobs.values()].filter(({ state }) => state === 'running'))
  const workOf = ({ graph }: Execution, { node, item }: Job): Work => {
    const { work } = graph.nodes[node]!
    return 'items' in work ? work.items[item!]! : work
  }

  /** Ends a job that must not go on; returns the execution that it awaits. */
  function withdraw(execution: Execution, node: number, item: number | null): Execution | undefined {
    const key = keyOf(node, item)
    const job = execution.jobs.get(key)
    expect(job, `the job ${key} is there`).toBeDefined()
    execution.jobs.delete(key)
    return job!.child
  }

  /** Does what a write says; returns the execution that must not go on either. */
  function write(execution: Execution, one: ExecutionWrite, at: number): Execution | undefined {
    const { jobs, plan, state } = execution
    const { node } = one as { node: number }
    if (one.write === 'end') execution.ends.push(one.status)
    else if (one.write === 'create_job') {
      expect(jobs.has(keyOf(node, null))).toBe(false)
      for (const before of execution.graph.nodes[node]!.before) expect(isOver(state.nodes[before]!)).toBe(true)
      jobs.set(keyOf(node, null), { node, item: null, state: one.takesSlotOf === null ? 'queued' : 'running' })
    } else if (one.write === 'create_item') {
      // In order, each once, and not more at once than the node allows.
      expect(one.item).toBe(execution.created[node]!++)
      jobs.set(keyOf(node, one.item), { node, item: one.item, state: one.takesSlot ? 'running' : 'queued' })
      const open = [...jobs.values()].filter(job => job.node === node && job.item !== null).length
      expect(open).toBeLessThanOrEqual(plan.nodes[node]!.items!.parallel)
    } else if (one.write === 'withdraw_job') return withdraw(execution, node, null)
    else if (one.write === 'withdraw_item') return withdraw(execution, node, one.item)
    else if (one.write === 'fail_job') jobs.delete(keyOf(node, null))
    else if (one.write === 'gather') {
      expect(execution.gathered.has(node)).toBe(false)
      execution.gathered.add(node)
      expect([...jobs.values()].filter(job => job.node === node)).toHaveLength(1)
      jobs.get(keyOf(node, null))!.state = 'gathered'
    } else if (one.write === 'node') execution.changedAt[node] = at
    return undefined
  }

  /** One commit. `ends`: the job that it ends, and whose slot it may hand on. */
  function step(execution: Execution, input: Untimed, ends?: Job): void {
    const { plan, state } = execution
    const at = ++now
    const writes = advance(plan, state, { ...input, at })
    if (ends) execution.jobs.delete(keyOf(ends.node, ends.item))
    const before = [...state.nodes]
    applyWrites(plan, state, writes, at)
    for (const [node, status] of before.entries()) if (isOver(status)) expect(state.nodes[node]).toBe(status)
    const within = writes.flatMap(one => write(execution, one, at) ?? [])
    check(execution)
    for (const child of within) step(child, { type: 'cancelled' })
    const { parent, ends: ended } = execution
    if (ended.length === 0 || !parent || !parent.execution.jobs.has(keyOf(parent.job.node, parent.job.item))) return
    delete parent.job.child
    end(parent.execution, parent.job, ended[0] === 'completed' ? 'completed' : 'failed', false)
  }

  function check(execution: Execution): void {
    const { plan, state, jobs, ends, changedAt } = execution
    expect(ends.length).toBe(state.open === 0 ? 1 : 0)
    expect(running().length).toBeLessThanOrEqual(slots)
    const open = [...state.nodes.entries()].filter(([, status]) => ['ready', 'running', 'waiting'].includes(status))
    const withJobs = new Set([...jobs.values()].filter(({ item }) => item === null).map(({ node }) => node))
    if (!isDeepStrictEqual(new Set(open.map(([node]) => node)), withJobs))
      expect([...withJobs], 'nodes with a job').toEqual(open.map(([node]) => node))
    for (const [node, status] of open) {
      if (state.items.has(node)) continue
      const job = jobs.get(keyOf(node, null))!
      expect(job.state).toBe(status === 'running' ? 'running' : status === 'waiting' ? 'aside' : 'queued')
    }
    const stored = {
      ...state,
      nodes: state.nodes.map((status, node) => {
        const items = state.items.get(node)
        return { status, at: changedAt[node]!, ...(items ? { items } : {}) }
      }),
    }
    const restored = restoredState(plan, stored as unknown as Parameters<typeof restoredState>[1])
    if (!isDeepStrictEqual(restored, state)) expect(restored).toEqual(state)
    execution.state = restored
  }

  const inputOf = ({ node, item }: Job, name: 'started' | 'requeued' | 'set_aside'): Untimed =>
    item === null ? { type: `job_${name}`, node } : { type: `item_${name}`, node, item }

  function end(execution: Execution, job: Job, status: 'completed' | 'failed', keepsSlot: boolean): void {
    const { node, item, state } = job
    const slotOf = keepsSlot && state === 'running' ? { slotOf: 'm' } : {}
    const own = { status, ran: state === 'running', waited: state === 'aside' || state === 'gathered' }
    if (item === null) step(execution, { type: 'job_ended', node, ...own, ...slotOf }, job)
    else step(execution, { type: 'item_ended', node, item, status, ...slotOf }, job)
  }

  /** What may happen next to a job. */
  function next(execution: Execution, job: Job): (() => void)[] {
    const { graph, plan } = execution
    const { node, item, state, child } = job
    if (state === 'gathered') return [() => end(execution, job, 'completed', false)]
    if (child || (item === null && plan.nodes[node]!.items && state === 'aside')) return []
    const requeue = () => {
      job.state = 'queued'
      step(execution, inputOf(job, 'requeued'))
    }
    const start = () => {
      job.state = 'running'
      step(execution, inputOf(job, 'started'))
    }
    if (state === 'queued' && running().length < slots && pick(3) > 0) return [start]
    const isRunning = state === 'running'
    // What needs no slot is known before the job has one, or when it has.
    if (item === null && graph.nodes[node]!.condition === false)
      return [() => step(execution, { type: 'condition_false', node, ran: isRunning }, job)]
    const { work } = graph.nodes[node]!
    /** The store takes the job from its run in the same commit. */
    const aside = (input: Untimed) => {
      if (isRunning) requeue()
      job.state = 'aside'
      step(execution, input)
    }
    if (item === null && 'items' in work) return [() => aside({ type: 'list_known', node, count: work.items.length })]
    const own = workOf(execution, job)
    if (own.kind === 'nested')
      return [
        () => {
          aside(inputOf(job, 'set_aside'))
          job.child = begin(own.graph, { execution, job })
          // Its end may have been told before it was known.
          if (job.child.ends.length > 0) delete job.child
        },
      ]
    const ends = () => end(execution, job, own.succeeds ? 'completed' : 'failed', pick(2) === 1)
    if (own.kind === 'wait') return state === 'aside' ? [ends] : [() => aside(inputOf(job, 'set_aside'))]
    if (!isRunning)
      return own.succeeds && item === null
        ? [() => step(execution, { type: 'result_reused', node, ran: false }, job)]
        : []
    return [ends, requeue]
  }

  /** Nothing that ran survives; what waits does. */
  function crash(): void {
    for (const execution of all)
      for (const job of execution.jobs.values())
        if (job.state === 'running') {
          job.state = 'queued'
          step(execution, inputOf(job, 'requeued'))
        }
  }

  const first = begin(root, null)
  return {
    all,
    first,
    crash,
    stop: (execution: Execution, how: 'cancelled' | 'timed_out') => step(execution, { type: how }),
    /** One thing that may happen; false if nothing may. */
    go(): boolean {
      const may = () => all.flatMap(execution => [...execution.jobs.values()].flatMap(job => next(execution, job)))
      const those = may()
      if (those.length > 0) those[pick(those.length)]!()
      return those.length > 0
    },
    running,
    open: () => all.filter(({ ends }) => ends.length === 0),
  }
}
