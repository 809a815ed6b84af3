import { useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { editorText } from '../../../text/editor.ts'
import { nodePath } from '../document/edits.ts'
import type { WorkflowNode } from '../document/workflow-document.ts'
import { DraftField, numberIn, useMembers } from './properties.tsx'
import { YamlField } from './value-field.tsx'

/** The members of a node that have a field here. */
export const settings = [
  'outputs',
  'retries',
  'timeout',
  'budget',
  'on_error',
  'cache',
  'when',
  'join',
  'defaults',
] as const

/** How a node is run: kept outputs, retries, time limit, budget, failure, cache, condition. `costs`: its task costs something. */
export function NodeSettings({ node, costs }: { node: WorkflowNode; costs: boolean }) {
  const { set, errorAt, number, lines, choice } = useMembers(nodePath(node.id))
  const [chosen, setOpen] = useState(false)
  // What is wrong must be seen.
  const open = chosen || settings.some(member => errorAt(member) !== undefined)
  const { retries } = node
  return (
    <section aria-label={editorText.settings} className="space-y-3">
      <Button small aria-expanded={open} onClick={() => setOpen(!open)} label={editorText.settings} />
      {open && (
        <>
          {lines('outputs', 'outputs', node.outputs, path => path, true)}
          <DraftField
            label={editorText.retries}
            hint={editorText.retriesHint}
            error={errorAt('retries.max') ?? errorAt('retries')}
            inputMode="numeric"
            value={String(retries?.max ?? '')}
            commit={text => {
              const max = numberIn(text)
              set(max === undefined ? 'retries' : 'retries.max', max)
            }}
          />
          {retries && number('backoff', 'retries.backoff_ms', retries.backoff_ms)}
          {number('nodeTimeout', 'timeout', node.timeout, 'decimal')}
          {(costs || node.budget !== undefined) && number('nodeBudget', 'budget', node.budget, 'decimal')}
          {choice('onError', 'on_error', node.on_error, { fail: undefined })}
          {choice('cache', 'cache', node.cache ?? '', { '': undefined })}
          <YamlField
            label={editorText.when}
            hint={editorText.whenHint}
            error={errorAt('when')}
            value={node.when}
            set={when => set('when', when)}
          />
          {choice('join', 'join', node.join ?? '', { '': undefined })}
          <YamlField
            label={editorText.defaults}
            hint={editorText.defaultsHint}
            error={errorAt('defaults')}
            value={node.defaults}
            set={defaults => set('defaults', defaults)}
          />
        </>
      )}
    </section>
  )
}
