import { useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { editorText } from '../../../text/editor.ts'
import { nodePath } from '../document/edits.ts'
import type { WorkflowNode } from '../document/workflow-document.ts'
import { DraftField, numberIn, useMembers } from './properties.tsx'
import { YamlField } from './value-field.tsx'

/** How a node is run: kept outputs, retries, time limit, failure, cache, condition. */
export function NodeSettings({ node }: { node: WorkflowNode }) {
  const { set, number, lines, choice } = useMembers(nodePath(node.id))
  const [open, setOpen] = useState(false)
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
            inputMode="numeric"
            value={String(retries?.max ?? '')}
            commit={text => {
              const max = numberIn(text)
              set(max === undefined ? 'retries' : 'retries.max', max)
            }}
          />
          {retries && number('backoff', 'retries.backoff_ms', retries.backoff_ms)}
          {number('nodeTimeout', 'timeout', node.timeout, 'decimal')}
          {choice('onError', 'on_error', node.on_error, { fail: undefined })}
          {choice('cache', 'cache', node.cache ?? '', { '': undefined })}
          <YamlField
            label={editorText.when}
            hint={editorText.whenHint}
            value={node.when}
            set={when => set('when', when)}
          />
          {choice('join', 'join', node.join ?? '', { '': undefined })}
          <YamlField
            label={editorText.defaults}
            hint={editorText.defaultsHint}
            value={node.defaults}
            set={defaults => set('defaults', defaults)}
          />
        </>
      )}
    </section>
  )
}
