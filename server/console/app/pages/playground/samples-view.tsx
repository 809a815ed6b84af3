import { memo, useDeferredValue, useState } from 'react'
import { CodeBlock } from '../../components/code.tsx'
import { Section } from '../../components/page.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { playgroundText as text } from '../../text/playground.ts'
import type { TaskChoice } from './choices.ts'
import { type Language, languages, type SampleRequest, sampleOf, samplePath } from './samples.ts'

interface SamplesProps {
  task: TaskChoice
  model: string
  inputs: Record<string, unknown>
  formats?: SampleRequest['formats']
}

/** The request as code, in the language that was chosen last. */
export const Samples = memo(function Samples({ task, model, inputs, formats }: SamplesProps) {
  const [language, choose] = useState<Language>('curl')
  // Typing into the form must not wait for the code.
  const shown = useDeferredValue(inputs)
  const code = sampleOf(language, {
    origin: location.origin,
    task: task.id,
    path: samplePath(task),
    model,
    inputs: shown,
    formats,
  })
  return (
    <Section title={text.samples}>
      <Tabs label={text.samples} names={text.languages} offered={languages} current={language} choose={choose}>
        <CodeBlock code={code} label={text.languages[language]} />
        <p className="text-muted mt-1 text-xs">{language === 'workflow' ? text.workflowHint : text.samplesHint}</p>
      </Tabs>
    </Section>
  )
})
