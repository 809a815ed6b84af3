import { Handle, type HandleProps, Position } from '@xyflow/react'
import { createContext, useContext } from 'react'
import { kindColours } from '../../components/colours.ts'
import { KindIcon } from '../../components/marks.tsx'
import { editorText } from '../../text/editor.ts'
import { type Drawn, judgeEnd, portOf } from './document/connections.ts'
import type { PortKind } from './document/port-kinds.ts'
import { cardKey, type Ports } from './document/ports.ts'

/** The line that a person draws from a port; it changes only when one begins and ends. */
export const DrawnContext = createContext<Drawn | undefined>(undefined)

/** Whether lines can be drawn from the ports of a card: others only look so, and lines may lead to them. */
export const LivePorts = createContext(true)

const hasColour = (kind: PortKind) => kind === 'text' || kind === 'image' || kind === 'video' || kind === 'audio'

/** What a port carries: the icon of a kind of data, or a word. */
export const PortKindMark = ({ kind }: { kind: PortKind }) =>
  hasColour(kind) ? (
    <>
      <KindIcon kind={kind} className="size-3" />
      <span className="sr-only">{editorText.portKinds[kind]}</span>
    </>
  ) : (
    kind !== 'any' && <span className="text-muted shrink-0">{editorText.portWords[kind]}</span>
  )

interface PortProps {
  card: string
  ports: Ports
  handle: string
  title: string
}

/**
 * A port, from or to which a person draws a line for a value or an order. While a line is drawn, the ports that it fits are
 * highlighted, and a port that it cannot lead to says why.
 */
export function Port({ card, ports, handle, title }: PortProps) {
  const drawn = useContext(DrawnContext)
  const facts = portOf(card, ports, handle)
  if (!facts) return null
  const { isOutput, kind, role } = facts
  const judgement = drawn && judgeEnd(drawn, facts)
  const colour = role === 'value' && hasColour(kind) ? kindColours[kind].port : '!border-control'
  const look = {
    fits: '!bg-accent !size-4 outline-4 outline-accent-soft',
    possible: '!bg-surface !size-3',
    refused: '!bg-surface !size-3 opacity-40',
  }[judgement?.fit ?? 'possible']
  return (
    <>
      <Dot
        card={card}
        type={isOutput ? 'source' : 'target'}
        position={isOutput ? Position.Right : Position.Left}
        id={handle}
        data-fit={judgement?.fit}
        className={`!border-2 ${colour} ${look}`}
        title={judgement?.why ?? title}
      />
      {judgement?.why && (
        <span
          role="tooltip"
          className={`bg-warning-soft text-warning border-line invisible absolute top-full z-20 w-52 rounded-md border p-2 shadow-md group-hover/port:visible ${isOutput ? 'right-2' : 'left-2'}`}
        >
          {judgement.why}
        </span>
      )}
    </>
  )
}

type DotProps = Required<Pick<HandleProps, 'type' | 'position'>> & {
  card: string
  id: string
  title: string
  className: string
  'data-fit': string | undefined
}

/**
 * The library's handle, or an element that it takes for one at the end of a line. Of hundreds of handles each would look
 * whenever anything of the graph changes.
 */
function Dot({ card, type, position, id, className, ...rest }: DotProps) {
  if (useContext(LivePorts)) return <Handle type={type} position={position} id={id} className={className} {...rest} />
  const node = cardKey(card)
  return (
    <div
      {...rest}
      data-id={`1-${node}-${id}-${type}`}
      data-nodeid={node}
      data-handleid={id}
      data-handlepos={position}
      className={`react-flow__handle react-flow__handle-${position} nodrag nopan ${type} connectable connectablestart connectableend connectionindicator ${className}`}
    />
  )
}
