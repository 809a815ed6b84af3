import { editorText } from '../../../text/editor.ts'
import { type Fit, fitOf, isMedium, kindOfOutput, refusalOf, type Taken, takenBy } from './port-kinds.ts'
import { inputHandle, listHandle, orderHandles, outputHandle, type Ports } from './ports.ts'
import { outputText } from './references.ts'
import { firstInputs, inputPorts, mainOutput, type OutputField, outputFields, type TaskFacts } from './schema.ts'

/** One end of a line that may be drawn. */
export interface PortFacts extends Taken {
  /** Id of the card. */
  card: string
  handle: string
  isOutput: boolean
  role: 'value' | 'list' | 'order'
  name: string
  /** Of an input: it has words already, to which a value is appended. */
  isText: boolean
}

/** The facts of a port of a card, by its handle; undefined if the card has no such port. */
export function portOf(card: string, ports: Ports, handle: string | null): PortFacts | undefined {
  if (handle === null) return undefined
  const port = { card, handle, isOutput: false, isText: false }
  if (handle === listHandle) return { ...port, role: 'list', name: editorText.forEach, kind: 'list', values: ['list'] }
  if (handle === orderHandles.after || handle === orderHandles.before)
    return {
      ...port,
      isOutput: handle === orderHandles.before,
      role: 'order',
      name: editorText.after,
      kind: 'any',
      values: [],
    }
  const input = ports.inputs.find(({ path }) => inputHandle(path) === handle)
  if (input) return { ...port, ...input.taken, role: 'value', name: input.name, isText: input.isText }
  const output = ports.outputs.find(({ path }) => outputHandle(path) === handle)
  return output && { ...port, isOutput: true, role: 'value', name: output.name, kind: output.carries, values: [] }
}

/** How well two ports fit, and why they do not. */
interface Judgement {
  fit: Fit
  why?: string
}

/** Whether a line may lead from an output to an input. `circle`: the node of the input runs before that of the output. */
function judge(output: PortFacts, input: PortFacts, circle: boolean): Judgement {
  if (output.card === input.card) return { fit: 'refused', why: editorText.refusedSelf }
  if (circle) return { fit: 'refused', why: editorText.refusedCircle(input.card, output.card) }
  if (output.role === 'order' || input.role === 'order')
    return { fit: output.role === input.role ? 'fits' : 'possible' }
  const fit = fitOf(output.kind, input, input.isText)
  return fit === 'refused' ? { fit, why: refusalOf(output, input) } : { fit }
}

/** A line that is being drawn. */
export interface Drawn {
  port: PortFacts
  /** The nodes to which it cannot lead, because they run before the one that it comes from, or after the one it goes to. */
  blocked: ReadonlySet<string>
}

/** How well a port fits the line that is being drawn; undefined for ports at the same side of their cards. */
export function judgeEnd({ port, blocked }: Drawn, end: PortFacts): Judgement | undefined {
  if (end.isOutput === port.isOutput) return undefined
  const [output, input] = port.isOutput ? [port, end] : [end, port]
  return judge(output, input, blocked.has(end.card))
}

const withLists = (outputs: readonly OutputField[]): OutputField[] =>
  outputs.flatMap(output => [output, ...withLists(output.children)])

/** The handle of a new node of a task to which a line is led that was drawn from a port; undefined if none fits. */
export function entryOf({ role, isOutput, ...drawn }: PortFacts, task: TaskFacts): string | undefined {
  if (role === 'order') return isOutput ? orderHandles.after : orderHandles.before
  if (isOutput) {
    const inputs = inputPorts(task.input_schema, firstInputs(task.input_schema), task.media_fields, true)
    const ranked = inputs
      .map(({ path, required }) => ({ path, required, fit: fitOf(drawn.kind, takenBy(task, path)) }))
      // An input that only may take the value counts if the task requires it, and never for the address of a file.
      .filter(({ fit, required }) => fit === 'fits' || (fit === 'possible' && required && !isMedium(drawn.kind)))
      .sort((a, b) => Number(b.fit === 'fits') - Number(a.fit === 'fits') || Number(b.required) - Number(a.required))
    return ranked[0] && inputHandle(ranked[0].path)
  }
  const tree = outputFields(task.output_schema)
  // What it gives is known only when it runs.
  if (tree.length === 0) return outputHandle('')
  const main = mainOutput(tree)
  const offered = role === 'list' ? withLists(tree).filter(({ kind }) => kind === 'list') : main ? [main] : []
  const found = offered.find(
    ({ path, kind }) => fitOf(kindOfOutput(task.id, path, kind), drawn, drawn.isText) === 'fits',
  )
  return found && outputHandle(outputText(found.path))
}
