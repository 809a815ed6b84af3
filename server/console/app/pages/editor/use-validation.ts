import { useEffect, useMemo, useState } from 'react'
import { ApiFailure, api, dataOf, type Schema } from '../../api/client.ts'
import { editorText } from '../../text/editor.ts'
import { type Problem, problemOfRefusal, problemsOf } from './document/diagnostics.ts'
import type { Parsed } from './document/workflow-document.ts'

/** Milliseconds without a change after which the server checks the workflow. */
const pauseMs = 30

/** The problems of a workflow: faults of its text at once, findings of the server after a pause. */
export function useValidation(text: string, { faults, value, workflow }: Parsed, enabled: boolean) {
  const [found, setFound] = useState<{ problems: Problem[]; failure?: string }>({ problems: [] })
  useEffect(() => {
    if (!enabled || value === undefined) return
    const controller = new AbortController()
    const check = async () => {
      const { dag = { nodes: {} }, parameters, region } = value as Partial<Schema<'WorkflowToValidate'>>
      try {
        const { diagnostics } = await dataOf(
          api.POST('/api/workflows/validate', { body: { dag, parameters, region }, signal: controller.signal }),
        )
        const findings = [...diagnostics.warnings, ...diagnostics.type_issues]
        setFound({ problems: problemsOf(findings, text) })
      } catch (thrown) {
        if (controller.signal.aborted || !(thrown instanceof ApiFailure)) return
        const { status, message, param } = thrown
        if (status === 400) setFound({ problems: [problemOfRefusal(message, param, text)] })
        else setFound(now => ({ ...now, failure: editorText.unchecked(message) }))
      }
    }
    const timer = setTimeout(() => void check(), pauseMs)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [text, value, enabled])

  const unnamed = workflow.name.trim() === '' && enabled
  return useMemo((): { problems: readonly Problem[]; failure?: string | undefined } => {
    if (faults.length > 0) return { problems: faults.map(fault => ({ severity: 'error', ...fault })) }
    const nameMissing: Problem = { severity: 'error', message: editorText.nameMissing, field: 'name', line: 1 }
    return unnamed ? { ...found, problems: [nameMissing, ...found.problems] } : found
  }, [faults, unnamed, found])
}
