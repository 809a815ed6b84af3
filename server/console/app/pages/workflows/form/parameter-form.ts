import type { Medium } from '../../../components/result/result-facts.ts'
import { portName } from '../../editor/document/port-names.ts'
import { takenValuesOf } from '../../editor/document/references.ts'
import type { Parameter, Workflow } from '../../editor/document/workflow-document.ts'
import { type Entered, enteredOf, type FieldKind, type FormField, formRequest } from '../../playground/form/fields.ts'

type Parameters = ReadonlyMap<string, Parameter>

const media: Readonly<Record<string, Medium>> = { image: 'image', video: 'video', audio: 'audio' }
const kinds: Readonly<Record<string, FieldKind>> = {
  string: 'text',
  // An address or the id of a file of any kind.
  file: 'line',
  number: 'number',
  integer: 'number',
  boolean: 'yes-no',
  array: 'json',
  object: 'json',
}

/** The fields of the form of a workflow: those without a default first. */
export function fieldsOfParameters(parameters: Parameters): FormField[] {
  return [...parameters]
    .map(([name, { type, description = '', enum: values, minimum, maximum, required, default: value }]): FormField => {
      const medium = media[type]
      return {
        name,
        label: portName([name]),
        hint: description,
        kind: values ? 'choice' : medium ? 'media' : (kinds[type] ?? 'text'),
        ...(medium ? { medium } : {}),
        required: required ?? value === undefined,
        main: true,
        options: (values ?? []).map(String),
        whole: type === 'integer',
        ...(typeof minimum === 'number' ? { minimum } : {}),
        ...(typeof maximum === 'number' ? { maximum } : {}),
      }
    })
    .sort((a, b) => Number(b.required) - Number(a.required))
}

/** What the form shows at first: the defaults, and what a link says instead, by the names of the parameters. */
export function firstEntered(fields: readonly FormField[], parameters: Parameters, link: URLSearchParams): Entered {
  const defaults = Object.fromEntries([...parameters].map(([name, parameter]) => [name, parameter.default]))
  const given = fields.flatMap(({ name }) => (link.has(name) ? [[name, link.get(name)]] : []))
  return { ...enteredOf(fields, defaults), ...Object.fromEntries(given) }
}

/** The parameters of an execution, of which choices have their own types again; and what is wrong in the form. */
export function executionOf(fields: readonly FormField[], parameters: Parameters, entered: Entered) {
  const { request, errors } = formRequest(fields, entered)
  for (const [name, { enum: values }] of parameters)
    if (values && name in request) request[name] = values.find(value => String(value) === request[name])
  return { input_params: request, errors }
}

/** Characters of an address that every program passes on. */
const maxLink = 2_000

/** The address of the form with what is entered and differs from the defaults; without it where it would be too long. */
export function linkOf(address: string, entered: Entered, defaults: Entered): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(entered))
    if (typeof value === 'string' && value !== '' && value !== defaults[name]) query.set(name, value)
  const link = query.size === 0 ? address : `${address}?${query}`
  return link.length > maxLink ? address : link
}

/** Ids of the nodes whose results no other node takes: what the workflow is about. */
export function resultNodes(workflow: Pick<Workflow, 'nodes'>): string[] {
  const taken = new Set(takenValuesOf(workflow).map(({ from }) => from))
  return workflow.nodes.map(({ id }) => id).filter(id => !taken.has(id))
}
