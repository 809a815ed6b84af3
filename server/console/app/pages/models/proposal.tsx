import type { Schema } from '../../api/client.ts'
import { sizeText } from '../../components/format.ts'
import { Notice } from '../../components/notice.tsx'
import { modelsText } from '../../text/models.ts'
import { ConfigLines } from './config-lines.tsx'

/** What adding a model would write, and what is missing for it. */
export function Proposal({ proposal }: { proposal: Schema<'ModelProposal'> }) {
  const { model, memory, obstacle, advice, lines } = proposal
  const { id, engine } = model as { id?: string; engine?: string }
  const facts = [
    ...(id === undefined ? [] : [id]),
    ...(engine === undefined ? [] : [`${modelsText.facts.engine}: ${engine}`]),
    ...(memory === null ? [] : [`${modelsText.facts.memory}: ${sizeText(memory)}`]),
  ]
  return (
    <div className="space-y-3">
      <h3 className="text-sm font-medium">{modelsText.recognised}</h3>
      <p>{facts.join(' · ')}</p>
      {obstacle !== null && <Notice kind="bad">{modelsText.obstacle(obstacle)}</Notice>}
      {advice.map(sentence => (
        <Notice key={sentence} kind="warning">
          {sentence}
        </Notice>
      ))}
      <h3 className="text-sm font-medium">{modelsText.writes}</h3>
      <ConfigLines {...lines} />
    </div>
  )
}
