import { Square } from 'lucide-react'
import { Button } from '../../../components/button.tsx'
import { chatText } from '../../../text/chat.ts'

/** Stops an answer: not by the second press of a double click on the button that stood here. */
export const StopButton = ({ stop }: { stop: () => void }) => (
  <Button icon={Square} onClick={event => event.detail < 2 && stop()} label={chatText.stop} />
)
