import java.awt.BorderLayout;
import java.awt.GridLayout;
import javax.swing.*;

/** A form of Swing: fields, a box to tick, a list, a menu, and a button that says what it was given. */
public class Form {
    public static void main(String[] arguments) {
        SwingUtilities.invokeLater(() -> {
            JFrame frame = new JFrame("Swing form");
            frame.setDefaultCloseOperation(JFrame.EXIT_ON_CLOSE);
            JTextField name = new JTextField(20);
            JLabel label = new JLabel("Name");
            label.setLabelFor(name);
            JCheckBox paid = new JCheckBox("Paid");
            JComboBox<String> country = new JComboBox<>(new String[] {"France", "Spain", "Chad"});
            country.getAccessibleContext().setAccessibleName("Country");
            JSlider volume = new JSlider(0, 100, 20);
            volume.getAccessibleContext().setAccessibleName("Volume");
            JTable table = new JTable(new Object[][] {{"Apple", "1"}, {"Pear", "2"}}, new Object[] {"Item", "Price"});
            JLabel said = new JLabel("nothing");
            JButton send = new JButton("Send");
            send.addActionListener(event -> said.setText("sent " + name.getText()));
            JMenuBar bar = new JMenuBar();
            JMenu file = new JMenu("File");
            JMenuItem clear = new JMenuItem("Clear");
            clear.addActionListener(event -> name.setText(""));
            file.add(clear);
            bar.add(file);
            frame.setJMenuBar(bar);
            JPanel fields = new JPanel(new GridLayout(0, 2));
            for (JComponent each : new JComponent[] {label, name, paid, country, new JLabel("Volume"), volume, send, said}) {
                fields.add(each);
            }
            frame.add(fields, BorderLayout.NORTH);
            frame.add(new JScrollPane(table));
            frame.setSize(500, 400);
            frame.setVisible(true);
        });
    }
}
